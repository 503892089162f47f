// Branches of a conversation: another answer, an edited message, and the way back. The original stays unchanged.
import assert from 'node:assert/strict'
import { Chat } from './lib/chat.mjs'
import { Model, Server, test, until, Visitor } from './lib/index.mjs'

test('an answer is given again, a message is edited, and the branches are found', async (t) => {
  const model = await Model.start(t)
  for (const word of ['one', 'two', 'three']) model.script(`say ${word}`, `Here is ${word}.`)
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server)
  await visitor.context.grantPermissions(['clipboard-read', 'clipboard-write'])
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  const said = (text) => chat.log.getByRole('article', { name: 'You said' }).filter({ hasText: text })
  const branch = (words) => page.getByRole('navigation', { name: `Branch ${words}` })
  const elsewhere = async (act) => {
    const from = page.url()
    await act()
    await until('another conversation is open', () => page.url() !== from && page.url().includes('/chat/'))
  }
  await chat.say('Please say one')
  await chat.ended('Here is one.')
  await chat.say('Please say two')
  await chat.ended('Here is two.')
  const original = page.url()
  const before = await chat.picture()

  const two = chat.answers.filter({ hasText: 'Here is two.' })
  await elsewhere(() => two.getByRole('button', { name: 'Answer again, in a branch' }).click())
  await branch('2 of 2').waitFor()
  await chat.ended('Here is two.')
  await chat.answers.getByText('Here is one.').waitFor()
  await page.getByRole('link', { name: 'Forked from another conversation' }).waitFor()
  assert(model.asked.at(-1).includes('Here is one.'), 'the model does not know what was said before')

  await said('Please say two').getByRole('button', { name: 'Edit and send again' }).click()
  await page.getByLabel('Edit the message').fill('Please say three')
  await elsewhere(() => page.getByRole('button', { name: 'Send', exact: true }).first().click())
  await branch('3 of 3').waitFor()
  await chat.ended('Here is three.')
  assert.equal(await chat.answers.getByText('Here is two.').count(), 0)
  const third = await chat.picture()
  await page.reload()
  await branch('3 of 3').waitFor()
  await until('a reload shows the same', async () => (await chat.picture()) === third)

  await elsewhere(() => branch('3 of 3').getByRole('link', { name: 'Previous branch' }).click())
  await elsewhere(() => branch('2 of 3').getByRole('link', { name: 'Previous branch' }).click())
  assert.equal(page.url(), original)
  await branch('1 of 3').waitFor()
  await until('the original has not changed', async () => (await chat.picture()).replaceAll(' 1 of 3', '') === before)

  await said('Please say two').getByRole('button', { name: 'Copy the link to this message' }).click()
  await page.getByText('The link is copied. Everybody who can open this server on this machine can read it.').waitFor()
  const link = await page.evaluate(() => navigator.clipboard.readText())
  assert.match(link, /\/chat\/[-0-9a-f]{36}#m\d+$/)
  const other = new Chat(await visitor.tab(link))
  await other.answers.getByText('Here is two.').waitFor()

  const one = chat.answers.filter({ hasText: 'Here is one.' })
  await elsewhere(() => one.getByRole('button', { name: 'Fork the conversation here' }).click())
  await chat.answers.getByText('Here is two.').waitFor({ state: 'detached' }) // the address changes before the page
  await chat.answers.getByText('Here is one.').waitFor()
  assert.equal(await chat.answers.getByText('Here is two.').count(), 0)
  await chat.say('Please say three')
  await chat.ended('Here is three.')
  await branch('4 of 4').waitFor()
})
