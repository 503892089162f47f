// Both examples of the official ACP SDK, unmodified: the client starts `parley acp`, and the agent runs with
// `runtime: acp`. A permission that the agent asks for reaches the person at the client.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { atEnd, binary, Server, temporary } from './lib/server.mjs'

const examples = new URL('examples/', import.meta.resolve('@agentclientprotocol/sdk'))
const agent = fileURLToPath(new URL('agent.js', examples))
const client = fileURLToPath(new URL('client.js', examples))

// The example agent waits for a second before each step. Here it waits less.
const hurry = 'data:text/javascript,const set=setTimeout;globalThis.setTimeout=(f)=>set(f,1)'

// converse runs the example client, which says "Hello, agent!", and chooses an option for its first permission. It
// returns what the client has printed, without line ends: the client ends the line after each piece of text, and the
// server may cut text anywhere.
async function converse(t, server, option) {
  // The client starts its agent with npx. This npx starts parley acp instead.
  const folder = temporary(t, 'npx')
  const npx = join(folder, 'npx')
  writeFileSync(npx, `#!/bin/sh\nexec '${binary}' acp --server '${server.url}'\n`)
  chmodSync(npx, 0o755)
  const env = { ...process.env, PATH: folder + delimiter + process.env.PATH }
  const editor = spawn('node', [client], { env, cwd: server.workspace, stdio: ['pipe', 'pipe', 'inherit'] })
  atEnd(t, () => editor.kill())
  let printed = ''
  let asked = false
  for await (const piece of editor.stdout.setEncoding('utf8')) {
    printed += piece
    if (asked || !printed.includes('Choose an option: ')) continue
    asked = true
    const [, number] = printed.match(new RegExp(`(\\d+)\\. .*\\(${option}\\)`))
    editor.stdin.write(number + '\n')
  }
  return printed.replaceAll('\n', '')
}

test('the example client of ACP allows and denies a call of the example agent', async (t) => {
  const command = JSON.stringify(['node', '--import', hurry, agent])
  const files = { 'agents/example.md': `---\nruntime: acp\ncommand: ${command}\n---\n` }
  const server = await Server.start(t, { files })

  const allowed = await converse(t, server, 'allow_once')
  assert.match(allowed, /Permission requested: .*config/)
  assert.match(allowed, /The changes have been applied\./)
  assert.match(allowed, /Agent completed with: end_turn/)

  const denied = await converse(t, server, 'reject_once')
  assert.match(denied, /I'll skip the configuration update\./)
  assert.doesNotMatch(denied, /The changes have been applied\./)
  assert.match(denied, /Agent completed with: end_turn/)
})
