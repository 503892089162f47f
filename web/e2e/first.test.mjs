// The first answer of a new conversation is rendered as fast as one in an old conversation: its code is already loaded.
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

const pairs = 7
const near = 60 // milliseconds that a new conversation may add to the time to its first answer
const slack = 300 // more, for a busy machine; code that is loaded after sending takes a second here

// painted sends the message in the field, and returns the milliseconds until the next answer was painted.
async function painted(page, chat) {
  const count = await chat.answers.locator('strong').count()
  await page.evaluate((count) => {
    window.painted = new Promise((resolve) => {
      let sent
      addEventListener('keydown', (event) => (sent ??= event.timeStamp), { capture: true, once: true })
      const look = new MutationObserver(() => {
        if (document.querySelectorAll('[role=log] article strong').length <= count) return
        look.disconnect()
        // The second frame begins when the first, which has the answer, was handed to the screen.
        requestAnimationFrame(() => requestAnimationFrame((now) => resolve(now - sent)))
      })
      look.observe(document, { childList: true, subtree: true, characterData: true })
    })
  }, count)
  await chat.field.press('Enter')
  const took = await page.evaluate(() => window.painted)
  await chat.idle()
  return took
}

const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)]

test('the first answer of a new conversation is painted about as soon as one of an old one', async (t) => {
  const model = await Model.start(t)
  model.script('say hello', 'Hello **there**.')
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  let late = 0 // delay of code, in milliseconds
  await page.route('**/assets/*', async (route) => {
    await new Promise((resolve) => setTimeout(resolve, late))
    await route.continue()
  })
  const fresh = []
  const old = []
  for (let i = 0; i <= pairs; i++) {
    late = 0
    await page.goto('/')
    await chat.field.fill('Please say hello')
    const has = (name) =>
      page.evaluate((n) => performance.getEntriesByType('resource').some((e) => e.name.includes(n)), name)
    await until('the view of a conversation is loaded', async () => (await has('ChatPanel')) && (await has('Markdown')))
    late = 1000
    const first = await painted(page, chat)
    await chat.field.fill('Please say hello')
    const next = await painted(page, chat)
    if (i === 0) continue // the server has not done this before
    fresh.push(first)
    old.push(next)
  }
  const more = median(fresh.map((took, i) => took - old[i]))
  t.diagnostic(
    `new ${Math.round(median(fresh))} ms, old ${Math.round(median(old))} ms; ` +
      `median difference ${Math.round(more)} ms, which is ${more <= near ? 'within' : 'over'} ${near} ms; ` +
      `the fastest: new ${Math.round(Math.min(...fresh))} ms, old ${Math.round(Math.min(...old))} ms`,
  )
  assert.ok(more < near + slack, `a new conversation takes ${Math.round(more)} ms longer: ${fresh.map(Math.round)}`)
})
