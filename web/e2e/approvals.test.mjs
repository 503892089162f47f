import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Chat } from './lib/chat.mjs'
import { call, Model, Server, temporary, test, until, Visitor, whileAway } from './lib/index.mjs'
import { Rail } from './lib/shell.mjs'

function touches(name) {
  return { toolCalls: [call('shell', { command: ['touch', name] })] }
}

async function waiting(t, ...names) {
  const model = await Model.start(t)
  for (const name of names) model.script(`make ${name}`, touches(name), `Done with ${name}.`)
  const server = await Server.start(t, { env: model.env })
  for (const [i, name] of names.entries()) {
    await server.ask('POST', '/api/chat', { body: { message: `Please make ${name}` } })
    await until(`${name} waits`, async () => (await server.ask('GET', '/api/v1/approvals')).approvals.length === i + 1)
  }
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/approvals')
  return {
    model,
    server,
    visitor,
    page,
    rail: new Rail(page),
    cards: page.getByRole('article', { name: /wants to/ }),
  }
}

test('everything that waits is answered in one place', async (t) => {
  const { model, server, visitor, page, rail, cards } = await waiting(t, 'one.txt', 'two.txt')
  await until('both are there', async () => (await cards.count()) === 2)
  await rail.pages.getByRole('link', { name: /Approvals 2/ }).waitFor()
  const one = cards.filter({ hasText: 'one.txt' })
  const two = cards.filter({ hasText: 'two.txt' })
  const other = await visitor.tab('/approvals')
  await other
    .getByRole('article', { name: /wants to/ })
    .first()
    .waitFor()

  await one.getByRole('button', { name: 'Allow once' }).click()
  await one.waitFor({ state: 'detached' })
  await until('it ran', () => existsSync(join(server.workspace, 'one.txt')))
  await until(
    'it is gone elsewhere',
    async () => (await other.getByRole('article', { name: /wants to/ }).count()) === 1,
  )
  await rail.pages.getByRole('link', { name: /Approvals 1/ }).waitFor()

  await two.getByLabel('Note for the agent').fill('Better not.')
  await two.getByRole('button', { name: 'Deny', exact: true }).click()
  await page.getByText('Nothing is waiting for you').waitFor()
  await until('the model is told', () => model.asked.some((body) => body.includes('Better not.')))
  assert(!existsSync(join(server.workspace, 'two.txt')))
})

test('an approved command runs without bubblewrap', async (t) => {
  const server = await Server.start(t, { env: { PATH: temporary(t, 'path') }, files: { '.env': 'KEY=1' } })
  const visitor = await Visitor.come(t, server)
  const chat = new Chat(await visitor.tab('/'))
  for (const [words, name] of [
    ['write hello to note.txt', 'note.txt'],
    ['run touch x', 'x'],
  ]) {
    await chat.say(words)
    await chat.card.getByRole('button', { name: 'Allow once' }).click()
    await until(`${name} is there`, () => existsSync(join(server.workspace, name)))
  }
})

const resting = (page) => page.locator('[data-card] button[aria-disabled="true"]')

test('a second click does not answer the card that comes next', async (t) => {
  const { server, page, cards } = await waiting(t, 'one.txt', 'two.txt')
  await page.clock.install()
  await page.reload()
  await until('both are there', async () => (await cards.count()) === 2)
  const allow = cards.first().getByRole('button', { name: 'Allow once' })
  await until('they can be answered', async () => (await resting(page).count()) === 0)
  const { x, y, width, height } = await allow.boundingBox()
  // The second click comes right after the card has moved, however slow the machine is.
  await page.clock.pauseAt(Date.now() + 10_000)
  await page.mouse.click(x + width / 2, y + height / 2)
  await until('the other one has moved up', async () => {
    await page.clock.runFor(20)
    return (await cards.count()) === 1
  })
  await page.mouse.click(x + width / 2, y + height / 2)
  await page.clock.resume()
  await until('one ran', () => existsSync(join(server.workspace, 'one.txt')))
  await until('the other one can be answered', async () => (await resting(page).count()) === 0)
  assert.equal(await cards.count(), 1)
  assert(!existsSync(join(server.workspace, 'two.txt')))
})

test('a card is answered with the keyboard', async (t) => {
  const { server, page, cards } = await waiting(t, 'one.txt', 'two.txt')
  await until('both are there', async () => (await cards.count()) === 2)
  // A key right after a card appears does not answer it.
  await until('they can be answered', async () => (await resting(page).count()) === 0)
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await until('one is left', async () => (await cards.count()) === 1)
  await page.keyboard.press('j')
  await page.keyboard.press('Backspace')
  await page.getByText('Nothing is waiting for you').waitFor()
  await until('one ran', () => existsSync(join(server.workspace, 'one.txt')))
  assert(!existsSync(join(server.workspace, 'two.txt')))
})

test('a person resolves a call of unknown outcome', async (t) => {
  const model = await Model.start(t)
  model.script(
    'wait long',
    { toolCalls: [call('shell', { command: ['sh', '-c', 'touch begun; sleep 600'] })] },
    'It was done.',
  )
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  await chat.say('Please wait long')
  await chat.card.getByRole('button', { name: 'Allow once' }).click()
  await until('it runs', () => existsSync(join(server.workspace, 'begun')))
  visitor.expect(whileAway)
  await server.kill()
  await server.launch()
  await page.goto('/approvals')
  const card = page.getByRole('article', { name: /the outcome is unknown/ })
  await card.getByText('sleep 600').waitFor()
  await card.getByRole('button', { name: 'It was done' }).click()
  await page.getByText('Nothing is waiting for you').waitFor()
})

test('a plan waits in the inbox, and a card is answered on the page of its run', async (t) => {
  const model = await Model.start(t)
  model
    .script(
      'plan the party',
      { toolCalls: [call('update_plan', { summary: 'A small party', items: [{ title: 'Buy cake', status: 'pending' }] })] },
      'What do you think?',
    )
    .script('Plan approved', 'The party is on.')
    .script('make one.txt', touches('one.txt'), 'Done with one.txt.')
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  const rail = new Rail(page)
  await chat.say('/plan plan the party')
  await chat.ended('What do you think?')
  await rail.pages.getByRole('link', { name: /Approvals 1/ }).waitFor()
  await rail.conversation(/waiting for you: .*plan the party/).waitFor()

  const inbox = await visitor.tab('/approvals')
  const plan = inbox.getByRole('region', { name: 'Plan' })
  await plan.getByText('helpful-assistant proposes a plan').waitFor()
  await plan.getByText('Buy cake').waitFor()
  await plan.getByRole('button', { name: 'Edit' }).click()
  await inbox.getByRole('textbox', { name: 'Plan' }).fill('Buy a big cake')
  await inbox.getByRole('button', { name: 'Save' }).click()
  await plan.getByText('Buy a big cake').waitFor()
  await plan.getByRole('button', { name: 'Approve and carry out' }).click()
  await inbox.getByText('Nothing is waiting for you').waitFor()
  await chat.ended('The party is on.')
  await until('the badge is gone', async () => (await rail.pages.getByRole('link', { name: /waiting/ }).count()) === 0)
  assert(model.asked.some((body) => body.includes('Buy a big cake')))

  await server.ask('POST', '/api/chat', { body: { message: 'Please make one.txt' } })
  await until('it waits', async () => (await server.ask('GET', '/api/v1/approvals')).approvals.length === 1)
  const { runs } = await server.ask('GET', '/api/v1/runs?open=1')
  await page.goto(`/runs/${runs[0].id}`)
  const card = page.getByRole('article', { name: /wants to/ })
  await card.getByRole('button', { name: 'Deny and stop' }).waitFor()
  await card.getByRole('button', { name: 'Allow once' }).click()
  await card.waitFor({ state: 'detached' })
  await until('it ran', () => existsSync(join(server.workspace, 'one.txt')))
})
