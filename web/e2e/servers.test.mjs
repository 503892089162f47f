// MCP servers, added on the page: tested before they are saved, used by the next turn, changed and removed.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { violations } from './lib/axe.mjs'
import { Chat } from './lib/chat.mjs'
import { call, jwt, Model, Server, test, token, until, Visitor, whileAway } from './lib/index.mjs'
import { atEnd } from './lib/server.mjs'

// program is an MCP server over standard input and output, without any library.
const program = `
import { createInterface } from 'node:readline'
const say = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize')
    say(id, { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'notes', version: '1' } })
  else if (method === 'tools/list')
    say(id, { tools: [{ name: 'greet', description: 'Greets.', inputSchema: { type: 'object' } }] })
  else if (method === 'tools/call') say(id, { content: [{ type: 'text', text: 'Hello from ' + process.env.PLACE_TOKEN }] })
  else if (id !== undefined)
    process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }) + '\\n')
})
`

test('a program is added, tested, used, changed and removed in the page', async (t) => {
  const model = await Model.start(t)
  model.script('greet me', { toolCalls: [call('notes__greet', {})] }, 'I was greeted.')
  const server = await Server.start(t, { env: model.env })
  const tools = join(server.data, '..', `parley-tools-${process.pid}`)
  mkdirSync(tools)
  writeFileSync(join(tools, 'notes.mjs'), program)
  const visitor = await Visitor.come(t, server, { tolerate: [whileAway] })
  visitor.expect(/400/)
  const page = await visitor.tab('/settings#tools')
  await page.getByRole('heading', { name: 'No tool servers' }).waitFor()
  await page.getByRole('button', { name: 'Add a tool server' }).click()
  const form = page.getByRole('form', { name: 'Add a tool server' })
  await form.getByLabel('Name of the server').fill('notes')
  assert.deepEqual(await violations(page), [])

  // If a program does not start, its last output is shown.
  await form.getByLabel('Command').fill(`node -e 'console.error("it is broken"); process.exit(3)'`)
  await form.getByRole('button', { name: 'Test' }).click()
  await form.getByText('does not work').waitFor()
  await form.getByText('it is broken', { exact: true }).waitFor()

  // A program that agents could replace gets no secrets. The same rule applies to servers in the settings file.
  await form.getByLabel('Command').fill(`node ${join(server.workspace, 'notes.mjs')}`)
  await form.getByLabel('Environment').fill('PLACE_TOKEN=here-it-is-4711')
  writeFileSync(join(server.workspace, 'notes.mjs'), program)
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText(/where agents can replace it/).waitFor()

  await form.getByLabel('Command').fill(`node ${join(tools, 'notes.mjs')}`)
  await form.getByLabel('Folders it may read').fill(tools)
  await form.getByRole('button', { name: 'Test' }).click()
  await form.getByText('notes__greet').waitFor()
  await form.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { name: 'notes', exact: true }).waitFor()
  await page.getByText('added here').waitFor()

  const chat = new Chat(await visitor.tab('/'))
  await chat.say('Please greet me')
  await chat.card.getByRole('button', { name: 'Allow once' }).click()
  await chat.ended('I was greeted.')
  const { sessions } = await server.ask('GET', '/api/v1/sessions')
  const log = await fetch(`${server.url}/api/v1/sessions/${sessions[0].id}/log`).then((response) => response.text())
  assert(log.includes('Hello from'), 'the server was not called')
  assert(!(log + (await server.ask('GET', '/api/v1/mcp').then(JSON.stringify))).includes('here-it-is-4711'), 'a secret is shown')

  // Switched off in this conversation: the model does not see it and cannot call it. After switching it on, it works
  // again.
  model.script('greet once more', { toolCalls: [call('notes__greet', {})] }, 'It is off.')
  const box = chat.page.getByRole('list', { name: 'Tool servers' }).getByRole('checkbox', { name: 'notes' })
  await box.uncheck()
  const off = () => server.ask('GET', `/api/v1/sessions/${sessions[0].id}/servers`).then((answer) => answer.off)
  await until('it is off', async () => (await off()).includes('notes'))
  await chat.page.reload()
  await chat.page.getByRole('checkbox', { name: 'notes', checked: false }).waitFor()
  await chat.say('Please greet once more')
  await chat.ended('It is off.')
  const offered = model.asked.filter((request) => request.includes('greet once more'))
  assert(!offered.some((request) => request.includes('"notes__greet","description"') || request.includes('"Greets."')))

  // It is there after a restart, and its secret stays when it is changed.
  await server.stop()
  await server.launch()
  await page.goto('/settings#tools')
  await page.getByRole('button', { name: 'Change', exact: true }).click()
  const change = page.getByRole('form', { name: 'Change notes' })
  assert.equal(await change.getByLabel('Environment').inputValue(), 'PLACE_TOKEN=')
  await change.getByLabel('change the workspace').check()
  await change.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('button', { name: 'Remove…' }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Remove' }).click()
  await page.getByRole('heading', { name: 'No tool servers' }).waitFor()
  const { events } = await server.ask('GET', '/api/v1/audit/events?resource_type=tool_server')
  assert.deepEqual(
    events.map(({ action }) => action),
    ['mcp_server.removed', 'mcp_server.set', 'tools.accepted', 'mcp_server.set', 'mcp_server.tested', 'mcp_server.tested'],
  )
})

test('where people sign in an administrator adds public addresses only', async (t) => {
  const server = await Server.start(t, { env: jwt })
  const inside = createServer((_, response) => response.end('a secret of the network'))
  await new Promise((resolve) => inside.listen(0, '127.0.0.1', resolve))
  atEnd(t, () => new Promise((resolve) => inside.close(resolve)))
  const ann = token('ann', 'org_admin')
  const put = (body, as = ann) => server.ask('PUT', '/api/v1/mcp/notes', { token: as, body })
  await assert.rejects(put({ command: ['/usr/bin/id'] }), /403.*program on this machine/)
  await assert.rejects(put({ url: `http://127.0.0.1:${inside.address().port}/mcp` }), /403.*https and public/)
  await assert.rejects(put({ url: 'https://example.com/mcp' }, token('bob', 'dept_head')), /403/)
  const { servers } = await put({ url: 'https://example.com/mcp', headers: { Authorization: 'Bearer hidden-word' } })
  assert.deepEqual(servers[0].setup, { url: 'https://example.com/mcp', headers: { Authorization: '' } })
  const seen = await server.ask('GET', '/api/v1/mcp', { token: token('bob', 'standard_user') })
  assert.equal(seen.servers[0].setup, undefined)
})
