import assert from 'node:assert/strict'
import { Server, test, until, Visitor } from './lib/index.mjs'
import { Rail } from './lib/shell.mjs'

// converse creates a conversation, and waits for the answers.
async function converse(server, ...texts) {
  const { id } = await server.ask('POST', '/api/v1/sessions', { body: {} })
  for (const content of texts) {
    await server.ask('POST', `/api/v1/sessions/${id}/inputs`, { body: { content } })
    await idle(server, id)
  }
  return id
}

const idle = (server, id) =>
  until('the run has ended', async () => (await server.ask('GET', `/api/v1/sessions/${id}`)).status === 'idle')

test('a message is found by its words, and the conversation opens there', async (t) => {
  const server = await Server.start(t)
  const texts = Array.from({ length: 12 }, (_, i) => `say line ${i}\n${'\nword'.repeat(30)}`)
  texts[1] = 'say the **crème** `brûlée` recipe'
  const id = await converse(server, ...texts)
  await converse(server, 'say something else')
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/settings')
  const rail = new Rail(page)
  await rail.conversation('say something else').waitFor()

  await page.keyboard.press('Control+k')
  await rail.palette.waitFor()
  await page.keyboard.type('creme "brulee rec')
  const found = rail.palette.getByRole('option').filter({ hasText: 'the crème brûlée recipe' })
  // Results of the words typed so far are shown until those of all words are there.
  const marks = found.first().locator('mark')
  await marks.filter({ hasText: 'brûlée recipe' }).waitFor()
  assert.deepEqual(await marks.allTextContents(), ['crème', 'brûlée recipe'])
  await page.keyboard.press('Enter')
  await page.waitForURL(`**/chat/${id}#*`)
  const log = page.getByRole('log', { name: 'Conversation' })
  const message = log.locator('[data-found]').getByText('the crème brûlée recipe', { exact: true })
  await until('the message is in view', async () => {
    const [box, frame] = await Promise.all([message.boundingBox(), log.boundingBox()])
    return box !== null && box.y >= frame.y - 1 && box.y + box.height <= frame.y + frame.height + 1
  })

  // The search field of the rail finds the same messages, and titles.
  await rail.search.fill('brulee')
  const passage = rail.conversations.getByRole('link').filter({ hasText: 'brûlée recipe' })
  await until('both messages', async () => (await passage.count()) === 2)
  await rail.search.fill('"(*')
  await rail.conversations.getByText('No conversation has these words.').waitFor()
})

test('conversations are pinned and archived, and say what is unread', async (t) => {
  const server = await Server.start(t)
  const first = await converse(server, 'say first')
  await converse(server, 'say second')
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab(`/chat/${first}`)
  const rail = new Rail(page)
  await page.getByRole('log', { name: 'Conversation' }).getByText('first', { exact: true }).waitFor()

  await rail.act('say first', 'Pin')
  await rail.conversations.getByRole('heading', { name: 'Pinned' }).waitFor()
  await rail.act('say second', 'Archive')
  await rail.conversation('say second').waitFor({ state: 'detached' })
  const { sessions } = await server.ask('GET', '/api/v1/sessions?archived=all')
  assert.deepEqual(
    sessions.map((s) => [s.title, s.pinned, s.archived]),
    [
      ['say second', undefined, true],
      ['say first', true, undefined],
    ],
  )
  await page.getByRole('button', { name: 'Archive', exact: true }).click()
  await rail.act('say second', 'Move out of the archive')
  await rail.conversations.getByText('Your archive is empty.').waitFor()
  await page.getByRole('button', { name: 'Back to conversations' }).click()
  await rail.conversation('say second').waitFor()

  // A conversation whose run ends in the background is unread; one that was
  // viewed is not.
  await rail.goTo('Agents')
  await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor()
  await server.ask('POST', `/api/v1/sessions/${first}/inputs`, { body: { content: 'say more' } })
  const unread = rail.conversations.getByRole('link', { name: /say first.*unread/ })
  await unread.waitFor()
  await unread.click()
  await page.waitForURL(`**/chat/${first}`)
  await until('it is read', async () => {
    const { sessions } = await server.ask('GET', '/api/v1/sessions')
    return sessions.every((s) => !s.unread)
  })
})

test('the browser asks about notifications when a person wants them', async (t) => {
  const server = await Server.start(t)
  const id = await converse(server, 'say hello')
  const visitor = await Visitor.come(t, server)
  await visitor.context.addInitScript(() => {
    globalThis.told = []
    globalThis.asked = 0
    globalThis.Notification = class {
      static permission = 'default'
      static async requestPermission() {
        globalThis.asked++
        return (this.permission = 'granted')
      }
      constructor(title, { body }) {
        globalThis.told.push(`${title}: ${body}`)
      }
    }
    Object.defineProperty(document, 'visibilityState', { get: () => globalThis.seen ?? 'visible' })
  })
  const page = await visitor.tab('/agents')
  const bell = page.getByRole('button', { name: 'Desktop notifications' })
  await new Rail(page).conversation('say hello').waitFor()
  assert.equal(await page.evaluate(() => globalThis.asked), 0)
  await bell.click()
  await until('it is on', async () => (await bell.getAttribute('aria-pressed')) === 'true')
  await page.evaluate(() => (globalThis.seen = 'hidden'))
  await page.getByText('online', { exact: true }).waitFor()
  await server.ask('POST', `/api/v1/sessions/${id}/inputs`, { body: { content: 'ask me' } })
  const told = (text) =>
    until('it is told', async () => {
      const all = await page.evaluate(() => globalThis.told)
      return all.includes(`helpful-assistant ${text}: say hello`)
    })
  await told('waits for you')
  const { questions } = await server.ask('GET', '/api/v1/questions')
  await server.ask('POST', `/api/v1/questions/${questions[0].id}`, { body: { answers: [['Red']] } })
  await told('has finished')
  assert.equal(await page.evaluate(() => globalThis.asked), 1)
})

test('a thousand conversations scroll', async (t) => {
  const server = await Server.start(t)
  for (let i = 0; i < 1000; i += 50)
    await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        server.ask('POST', '/api/v1/sessions', { body: { title: `Conversation ${i + n}` } }),
      ),
    )
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/settings')
  const rail = new Rail(page)
  await rail.conversations.getByRole('link').first().waitFor()
  const seen = new Set()
  await until('all were seen', async () => {
    for (const title of await rail.conversations.getByRole('link').allTextContents()) seen.add(title)
    await rail.conversations.evaluate((nav) => nav.scrollBy(0, nav.clientHeight))
    return seen.size === 1000
  })
  assert(await rail.conversations.getByRole('link').count() < 100, 'only what is in view is in the page')
})
