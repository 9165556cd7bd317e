// A client of the TypeScript SDK: `node typescript_client.mjs MODULES URL auto|legacy`. It prints what it saw as JSON.
import { createRequire } from 'node:module';

const [modules, url, mode] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');

const IDLE_MS = 1000; // Shorter than the whole call: only its progress keeps it alive.

const client = new Client(
  { name: 'typescript', version: '1.0.0' },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } }
);
const forms = [];
client.setRequestHandler('elicitation/create', ({ params }) => {
  forms.push(params.message);
  const fields = Object.entries(params.requestedSchema.properties);
  return { action: 'accept', content: Object.fromEntries(fields.map(([name, field]) => [name, value(field)])) };
});

function value(field) {
  const choices = field.enum ?? field.oneOf?.map((each) => each.const);
  return choices?.[0] ?? { integer: 4, number: 4, boolean: true }[field.type] ?? 'Ann';
}

await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
const steps = [];
const call = (name, given, options) => client.callTool({ name, arguments: given }, options);
const added = await call('add', { a: 19, b: 23 });
const slow = await call('slow', { steps: 4 }, {
  onprogress: (step) => steps.push(step.progress),
  resetTimeoutOnProgress: true,
  timeout: IDLE_MS,
});
const asked = await call('table', { day: 'Monday' });
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), added, slow, steps, asked, forms }));
await client.close();
process.exit(0);
