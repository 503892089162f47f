// Several servers on one database: each lists all of them, and shows the conversations of the others.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Chat } from './lib/chat.mjs'
import { Server, test, until, Visitor } from './lib/index.mjs'
import { startPostgres } from './lib/postgres.mjs'
import { Rail } from './lib/shell.mjs'

test('the nodes that share a database are listed, and one that stops is gone', async (t) => {
  const url = await startPostgres(t)
  if (url === undefined) return t.skip('PostgreSQL is not installed')
  const env = { PARLEY_DATABASE_URL: url, PARLEY_SERVER_KEY: randomBytes(32).toString('base64') }
  const one = await Server.start(t, { env })
  const two = await Server.start(t, { env })
  const chat = new Chat(await (await Visitor.come(t, two, { tolerate: [/ERR_|WebSocket/] })).tab('/'))
  await chat.say('say hello from the second')
  await chat.ended('hello from the second')

  const visitor = await Visitor.come(t, one)
  const page = await visitor.tab('/settings#nodes')
  const nodes = page.getByRole('list', { name: 'Nodes' }).getByRole('listitem')
  await until('both are there', async () => (await nodes.count()) === 2)
  const here = nodes.filter({ hasText: 'this server' })
  await here.getByText(one.address).waitFor()
  const other = nodes.filter({ hasText: two.address })
  await other.getByText('serving').waitFor()
  await other.getByText('1 session in memory').waitFor()
  await new Rail(page).conversation(/say hello from the second/).click()
  await new Chat(page).answers.getByText('hello from the second').waitFor()

  await page.goto('/settings#nodes')
  await until('both are there again', async () => (await nodes.count()) === 2)
  await two.stop()
  await until('one is left', async () => (await nodes.count()) === 1)
  assert.equal(await nodes.filter({ hasText: two.address }).count(), 0)
})
