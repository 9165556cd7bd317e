// A server of the TypeScript SDK 2 over HTTP: `node typescript_server.mjs MODULES`. It prints its port.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { text } from 'node:stream/consumers';

const require = createRequire(`${process.argv[2]}/`);
const { McpServer, createMcpHandler } = require('@modelcontextprotocol/server');
const z = require('zod');

const said = (...texts) => ({ content: texts.map((one) => ({ type: 'text', text: one })) });

function newServer() {
  const server = new McpServer({ name: 'typescript', version: '1.0.0' });
  const numbers = z.object({ a: z.number(), b: z.number() });
  const sum = z.object({ sum: z.number() });
  server.registerTool('add', { description: 'Adds.', inputSchema: numbers, outputSchema: sum }, ({ a, b }) => ({
    ...said(String(a + b)),
    structuredContent: { sum: a + b },
  }));
  server.registerTool('long_text', { inputSchema: z.object({ length: z.number() }) }, ({ length }) =>
    said('x'.repeat(length), '# heading\n\tindented ✓')
  );
  server.registerTool('fail', { inputSchema: z.object({}) }, () => {
    throw new Error('the disk is full');
  });
  server.registerTool('count', { inputSchema: z.object({ upto: z.number() }) }, async ({ upto }, context) => {
    const progressToken = context.mcpReq._meta?.progressToken;
    for (let progress = 1; progress <= upto && progressToken !== undefined; progress += 1) {
      const params = { progressToken, progress, total: upto, message: `at ${progress}` };
      await context.mcpReq.notify({ method: 'notifications/progress', params });
    }
    return said(`counted to ${upto}`);
  });
  return server;
}

const handler = createMcpHandler(newServer);

async function serve(incoming, outgoing) {
  const isGet = incoming.method === 'GET';
  const body = isGet ? undefined : await text(incoming);
  const url = `http://${incoming.headers.host}${incoming.url}`;
  const answer = await handler.fetch(new Request(url, { method: incoming.method, headers: incoming.headers, body }));
  outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
  for await (const chunk of answer.body ?? []) outgoing.write(chunk);
  outgoing.end();
}

const server = createServer((incoming, outgoing) => serve(incoming, outgoing).catch(() => outgoing.destroy()));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
