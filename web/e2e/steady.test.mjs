// A reload, a second tab, ten tabs, and a lost server all end in the same
// picture.
import assert from 'node:assert/strict'
import { Chat } from './lib/chat.mjs'
import { call, Model, Server, test, until, Visitor, whileAway } from './lib/index.mjs'

const story =
  'Once upon a time there was a log. Everything that was shown had been written to it first. ' +
  'Nobody was ever surprised again. The end.'

async function midStream(t) {
  const model = await Model.start(t)
  model.always('a story', story)
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  const hold = model.hold('a story')
  await chat.say('Tell me a story')
  await hold.reached
  await chat.answers.getByText('Once upon').waitFor()
  await page.waitForURL('**/chat/*')
  return { model, server, visitor, page, chat, hold }
}

test('a page that is loaded anew in the middle of an answer goes on', async (t) => {
  const { page, chat, hold, visitor } = await midStream(t)
  await page.reload()
  await chat.answers.getByText('Once upon').waitFor()
  await chat.stop.waitFor()
  hold.release()
  await chat.ended('The end.')
  assert.equal(await chat.answers.count(), 1, 'it is there once')
  const fresh = new Chat(await visitor.tab(page.url()))
  await fresh.ended('The end.')
  await until('both show the same', async () => (await fresh.picture()) === (await chat.picture()))
})

test('a server that dies in the middle of an answer comes back, and so does the answer', async (t) => {
  const { server, visitor, page, chat, hold } = await midStream(t)
  visitor.expect(whileAway)
  await server.kill()
  hold.release()
  await page
    .getByText(/connection is lost|Offline/i)
    .first()
    .waitFor()
  await chat.say('typed while it was away')
  await page.getByRole('alert').getByText('The server cannot be reached.').waitFor()
  await server.launch()
  await chat.ended('The end.')
  await chat.log.getByText('The answer broke off here').waitFor()
  await page.getByText(/cannot be reached|Offline/).first().waitFor({ state: 'detached' })
  assert.equal(await chat.field.inputValue(), 'typed while it was away')
  const fresh = new Chat(await visitor.tab(page.url()))
  await fresh.ended('The end.')
  await until('both show the same', async () => (await fresh.picture()) === (await chat.picture()))
})

test('while the server is away, one banner says so and clocks stand still', async (t) => {
  const model = await Model.start(t)
  model.always('a story', story)
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server)
  const page = await visitor.context.newPage()
  await page.clock.install()
  await page.goto('/')
  const chat = new Chat(page)
  const hold = model.hold('a story')
  await chat.say('Tell me a story')
  await hold.reached
  await chat.answers.getByText('Once upon').waitFor()
  const details = page.getByRole('complementary', { name: 'Run details' })
  const clock = details.getByText(/^(\d+ s|\d+ min \d+ s)$/).first()
  const seconds = async () => {
    const [, minutes = '0', rest] = /^(?:(\d+) min )?(\d+) s$/.exec(await clock.textContent())
    return Number(minutes) * 60 + Number(rest)
  }
  await page.clock.fastForward('01:00')
  await until('the clock runs', async () => (await seconds()) >= 60)

  visitor.expect(whileAway)
  await server.kill()
  await page.clock.fastForward('00:05')
  const banner = page.getByText(/^Offline: no connection to the server since/)
  await banner.waitFor()
  const stands = await seconds()
  // Lists that cannot be loaded now say nothing more.
  let failures = 0
  page.on('requestfailed', (request) => (failures += /\/api\/v1\/sessions\?/.test(request.url()) ? 1 : 0))
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
  await until('the list of conversations has given up', async () => {
    await page.clock.fastForward('00:10')
    return failures >= 3
  })
  await page.clock.fastForward('10:00')
  await until('nothing has moved', async () => (await seconds()) === stands)
  const banners = page.getByText(/connection is lost|cannot be reached|no connection|not connected/i)
  assert.deepEqual(await banners.allTextContents(), [await banner.textContent()])

  hold.release()
  await server.launch()
  await page.clock.fastForward('01:00') // the next attempt may be some time ahead
  await chat.ended('The end.')
  await page.getByText('online', { exact: true }).waitFor()
  const trouble = page.getByText(/connection is lost|cannot be reached|no connection|offline/i)
  await until('no trouble is shown', async () => (await trouble.count()) === 0)
})

test('two tabs show the same, and a card is gone in both once answered', async (t) => {
  const model = await Model.start(t)
  model.script('make a file', { toolCalls: [call('shell', { command: ['touch', 'made.txt'] })] }, 'It is there.')
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server)
  const one = new Chat(await visitor.tab('/'))
  await one.say('Please make a file')
  await one.page.waitForURL('**/chat/*')
  await one.card.waitFor()
  const two = new Chat(await visitor.tab(one.page.url()))
  await two.card.getByRole('button', { name: 'Allow once' }).click()
  for (const chat of [one, two]) {
    await chat.ended('It is there.')
    await chat.card.waitFor({ state: 'detached' })
  }
  await until('both show the same', async () => (await one.picture()) === (await two.picture()))
})

test('ten tabs stay live', async (t) => {
  const { page, visitor, hold } = await midStream(t)
  const tabs = []
  for (let i = 0; i < 10; i++) tabs.push(new Chat(await visitor.tab(page.url())))
  for (const tab of tabs) await tab.answers.getByText('Once upon').waitFor()
  hold.release()
  for (const tab of tabs) await tab.ended('The end.')
  const last = tabs.at(-1)
  await last.say('Tell me a story again')
  for (const tab of tabs) await until('it is in every tab', async () => (await tab.answers.count()) === 2)
})
