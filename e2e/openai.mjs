// npm openai, unmodified, for client.mjs:
//
//   {"do": "openai", "socket": "1", "url": "http://…/v1", "call": "responses.create", "args": [{…}], "headers": {…}}
//   {…, "leave": 3}   hang up the moment the third event has come
//   {…, "body": "{"}  send this body instead
//
// Events of a stream are messages, and the end of the call is the answer; for a helper like responses.stream its data
// is the assembled result. A call that throws is an error, with the status and the class.
import OpenAI from 'openai';
import { sending } from './clients/sending.mjs';

export async function openai({ socket, url, call, args, headers, key, leave, body }, tell, sockets) {
  const client = new OpenAI({ baseURL: url, apiKey: key ?? 'none', defaultHeaders: headers, fetch: sending(body) });
  const hangUp = new AbortController();
  sockets.set(socket, { close: () => hangUp.abort() });
  let left = leave ?? Infinity;
  try {
    const path = call.split('.');
    const method = path.pop();
    const on = path.reduce((o, name) => o[name], client);
    let result = on[method](...(args ?? []), { signal: hangUp.signal });
    if (result.withResponse) result = await result;
    if (result?.[Symbol.asyncIterator] && !Array.isArray(result.data)) {
      for await (const event of result) {
        tell(socket, 'message', { data: JSON.stringify(event) });
        if (--left === 0) break;
      }
      result = left > 0 ? await (result.finalResponse?.() ?? result.finalChatCompletion?.() ?? null) : null;
    }
    tell(socket, 'answer', { code: 200, data: JSON.stringify(result) });
  } catch (e) {
    const { status, message, code, param, type } = e;
    tell(socket, 'error', { code: status ?? 0, data: JSON.stringify({ class: e.constructor.name, message, code, param, type }) });
  }
}
