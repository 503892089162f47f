// An agent that is an unmodified ACP program from npm: the example of the
// official SDK, in the last version that includes it.
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { Chat } from './lib/chat.mjs'
import { Server, test, Visitor } from './lib/index.mjs'

const program = fileURLToPath(new URL('examples/agent.js', import.meta.resolve('@agentclientprotocol/sdk')))

// The example waits for a second before each step. Here it waits less.
const hurry = 'data:text/javascript,const set=setTimeout;globalThis.setTimeout=(f)=>set(f,1)'

test('an ACP program asks in the chat: allowed once, and denied', async (t) => {
  const command = JSON.stringify(['node', '--import', hurry, program])
  const agent = `---\nruntime: acp\ncommand: ${command}\n---\n`
  const server = await Server.start(t, { files: { 'agents/example.md': agent } })
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/')
  const chat = new Chat(page)

  await chat.say('Improve the configuration')
  await chat.card.getByText('new-host').waitFor()
  assert.equal(await chat.answers.getByText('The changes have been applied.').count(), 0, 'it went on unasked')
  await chat.card.getByRole('button', { name: 'Allow once' }).click()
  await chat.ended('The changes have been applied.')
  await chat.log.getByRole('button', { name: /edit/ }).click()
  await chat.log.getByText('Configuration updated').waitFor()

  await page.goto('/')
  await chat.say('Improve the configuration')
  await chat.card.getByText('new-host').waitFor()
  await chat.card.getByRole('button', { name: 'Deny', exact: true }).click()
  await chat.ended("I'll skip the configuration update.")
  assert.match(await chat.picture(), /denied edit/)
  await chat.log.getByRole('button', { name: /edit/ }).click()
  await chat.log.getByText('new-host').first().waitFor()
  assert.equal(await chat.log.getByText('Configuration updated').count(), 0, 'it was done all the same')
})
