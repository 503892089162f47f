#!/usr/bin/env node
// A receiver of Parley's webhooks. It needs nothing but Node.
//
//   WEBHOOK_SECRET=whsec_… node examples/webhook-receiver.mjs 9000
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

if (!/^whsec_./.test(process.env.WEBHOOK_SECRET ?? '')) throw new Error('set WEBHOOK_SECRET to the secret that the server gave, whsec_…');
const key = Buffer.from(process.env.WEBHOOK_SECRET.replace(/^whsec_/, ''), 'base64');
const had = new Set(); // ids of deliveries; keep them for a day, where a restart does not lose them

createServer(async (req, res) => {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const [id, at, signed = ''] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((h) => req.headers[h]);
  const want = Buffer.from('v1,' + createHmac('sha256', key).update(`${id}.${at}.`).update(body).digest('base64'));
  const good = signed.split(' ').some((s) => s.length === want.length && timingSafeEqual(Buffer.from(s), want));
  if (!good || Math.abs(Date.now() / 1000 - at) > 300) return res.writeHead(401).end();
  if (!had.has(id)) console.log(id, body.toString()); // do what is to be done, once
  had.add(id);
  res.writeHead(204).end(); // within 15 seconds, or it comes again
}).listen(process.argv[2] ?? 9000, '127.0.0.1', function () { console.log('listening on', this.address().port); });
