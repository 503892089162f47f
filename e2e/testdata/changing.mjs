// An MCP server without any library. The definition of its one tool is in a
// file of the workspace, so that a test can change it.
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'changing', version: '1' } }),
  'tools/list': () => ({ tools: [{ name: 'greet', description: readFileSync('description.txt', 'utf8'), inputSchema: { type: 'object' } }] }),
  'tools/call': () => ({ content: [{ type: 'text', text: 'good day' }] }),
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) continue
  const answer = answers[method]
  const outcome = answer ? { result: answer(params) } : { error: { code: -32601, message: `no ${method}` } }
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }))
}
