// The first answer of a new conversation is painted with code that is there already, as an old one's is.
import assert from 'node:assert/strict'
import { Chat } from './lib/chat.mjs'
import { Model, Server, test, until, Visitor } from './lib/index.mjs'

test('a new conversation loads no code between its first message and its first answer', async (t) => {
  const model = await Model.start(t)
  model.script('say hello', 'Hello **there**.')
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  const asked = new Set()
  const arrived = new Set()
  const isCode = (request) => ['script', 'stylesheet'].includes(request.resourceType())
  page.on('request', (request) => isCode(request) && asked.add(request.url()))
  page.on('requestfinished', (request) => asked.has(request.url()) && arrived.add(request.url()))
  await chat.field.fill('Please say hello')
  const has = (name) =>
    page.evaluate((n) => performance.getEntriesByType('resource').some((e) => e.name.includes(n)), name)
  await until('the view of a conversation is loaded', async () => (await has('ChatPanel')) && (await has('Markdown')))
  await until('all that was asked for is here', () => asked.size === arrived.size)
  const before = asked.size
  await chat.field.press('Enter')
  await chat.answers.locator('strong', { hasText: 'there' }).waitFor()
  assert.equal(asked.size, before, `loaded after the message was sent: ${[...asked].slice(before).join(' ')}`)
})
