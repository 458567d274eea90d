/**
 * A trace collector, as a program: takes OTLP over HTTP in JSON at the port of its argument and writes every span that it
 * was sent as a line of JSON. With "hang" as second argument it never answers.
 */
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';

const [port, mode] = process.argv.slice(2);

interface Body {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly object[] }[] }[];
}

const server = createServer((request, response) => {
  if (mode === 'hang') return;
  void json(request).then((body) => {
    for (const { scopeSpans } of (body as Body).resourceSpans)
      for (const { spans } of scopeSpans) for (const span of spans) console.log(JSON.stringify(span));
    response.setHeader('content-type', 'application/json').end('{}');
  });
});
server.listen(Number(port), '127.0.0.1', () => console.log('listening'));
