// An authorization server of npm's oidc-provider: `node oidc_provider.mjs NODE_MODULES PORT AUDIENCE KEYS`.
// Each person may log in, and each client may register. Its tokens are JWTs for the audience.
import { pathToFileURL } from "node:url";

const [modules, port, audience, keys] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`));
const scope = "tools:read tools:write";
const robot = { client_id: "robot", client_secret: "robot-secret", redirect_uris: [], response_types: [] };
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ ...robot, grant_types: ["client_credentials"], token_endpoint_auth_method: "client_secret_post" }],
  jwks: JSON.parse(keys),
  // Only with this one may clients register for refresh tokens.
  scopes: [...scope.split(" "), "offline_access"],
  clientDefaults: { application_type: "native", token_endpoint_auth_method: "none" },
  features: {
    clientCredentials: { enabled: true },
    registration: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({ scope, audience, accessTokenFormat: "jwt", jwt: { sign: { alg: "RS256" } } }),
    },
  },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("listening"));
