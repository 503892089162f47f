// Settings: each page shows what there is, changes it, says what it is for where there is nothing, and recovers.
import assert from 'node:assert/strict'
import { Chat } from './lib/chat.mjs'
import { call, jwt, Model, Server, test, token, until, Visitor } from './lib/index.mjs'

const tab = (page, name) => page.getByRole('tab', { name, exact: true }).click()

test('rules, webhooks, idle prompts and the audit are seen and changed', async (t) => {
  const model = await Model.start(t)
  const touch = { toolCalls: [call('shell', { command: ['touch', 'made.txt'] })] }
  model.script('make a file', touch, 'Made.')
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server)
  visitor.expect(/500/)
  const page = await visitor.tab('/settings')

  // Every part is offered by the overview, and says what it is for while it is empty.
  await page.getByRole('button', { name: /^Always rules/ }).click()
  await page.getByRole('heading', { name: 'Nothing is allowed without asking' }).waitFor()
  for (const [name, empty] of [
    ['Tool servers', 'No tool servers'],
    ['Skills', 'No skills'],
    ['Webhooks', 'No webhooks'],
    ['People and tokens', 'Only this machine can connect'],
    ['Nodes', 'One server'],
  ]) {
    await tab(page, name)
    await page.getByRole('heading', { name: empty }).waitFor()
  }

  const chat = new Chat(await visitor.tab('/'))
  await chat.say('Please make a file')
  await chat.card.getByRole('button', { name: 'Always', exact: true }).click()
  await chat.ended('Made.')

  await page.reload()
  await tab(page, 'Always rules')
  const rule = page.getByRole('list', { name: 'Rules' }).getByRole('listitem')
  await rule.getByText('Run a command').waitFor()
  await rule.getByText('touch made.txt').waitFor()
  await rule.getByRole('button', { name: /^Revoke/ }).click()
  await page.getByRole('heading', { name: 'Nothing is allowed without asking' }).waitFor()

  await tab(page, 'Webhooks')
  await page.getByLabel('Address').fill('https://93.184.216.34/parley')
  await page.getByRole('button', { name: 'Add the webhook' }).click()
  await page.getByRole('status').getByText(/^whsec_/).waitFor()
  const hook = page.getByRole('list', { name: 'Webhooks' }).getByRole('listitem')
  await hook.getByText('https://93.184.216.34/parley').waitFor()
  await page.reload()
  await hook.getByRole('button', { name: 'Remove…' }).click()
  assert.equal(await page.getByText(/^whsec_/).count(), 0, 'the secret is shown again')
  await page.getByRole('alertdialog').getByRole('button', { name: 'Remove' }).click()
  await page.getByRole('heading', { name: 'No webhooks' }).waitFor()

  await tab(page, 'Autonomy')
  await page.getByLabel('Idle prompt', { exact: true }).fill('Look at the tests.')
  await page.getByRole('button', { name: 'Set the override' }).click()
  const override = page.getByRole('list', { name: 'Overrides' }).getByRole('listitem')
  await override.getByText('Look at the tests., after 10 min').waitFor()
  await override.getByRole('button', { name: /^Reset/ }).click()
  await override.waitFor({ state: 'detached' })

  // The audit knows all of it, in pages and by kind. A failure offers another try.
  const change = (turns) => server.ask('PATCH', '/api/v1/settings', { body: { turns } })
  await Promise.all(Array.from({ length: 60 }, (_, i) => change(10 + i)))
  let broken = true
  await page.route('**/api/v1/audit/events*', (route) => (broken ? route.fulfill({ status: 500 }) : route.continue()))
  await tab(page, 'Audit')
  const alert = page.getByRole('main').getByRole('alert')
  await alert.waitFor()
  broken = false
  await alert.getByRole('button', { name: /again/i }).click()
  const records = page.getByRole('list', { name: 'Audit records' }).locator('> li')
  await until('a page is there', async () => (await records.count()) === 50)
  await page.getByRole('button', { name: 'Load earlier records' }).click()
  await until('more is there', async () => (await records.count()) > 60)
  await page.getByLabel('What').selectOption({ label: 'Webhook removed' })
  await until('one is left', async () => (await records.count()) === 1)
  await records.first().locator('summary').click()
  await records.first().getByText('"webhook.removed"').waitFor()
  await page.getByLabel('Who').fill('nobody')
  await page.getByLabel('Who').press('Enter')
  await page.getByRole('heading', { name: 'No record matches' }).waitFor()
})

test('people are listed, and their tokens are revoked', async (t) => {
  const server = await Server.start(t, { env: jwt })
  const ann = token('ann', 'org_admin')
  const bob = token('bob', 'standard_user')
  await server.ask('POST', '/api/v1/sessions', { token: bob, body: { title: 'Of bob' } })
  const visitor = await Visitor.come(t, server, { tolerate: [/401/] })
  const page = await visitor.tab('/settings#people')
  await page.getByLabel('Access token').fill(ann)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.goto('/settings#people')
  const person = page.getByRole('list', { name: 'People' }).getByRole('listitem').filter({ hasText: 'bob' })
  await person.getByText('1 conversation').waitFor()
  await page.getByLabel('User', { exact: true }).fill("eve o'neil")
  await page.getByText("--user 'eve o'\\''neil'").waitFor()
  await person.getByRole('button', { name: 'Revoke tokens…' }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Revoke' }).click()
  await page.getByText('The tokens of bob are revoked').waitFor()
  await assert.rejects(server.ask('GET', '/api/v1/me', { token: bob }), /401/)
})
