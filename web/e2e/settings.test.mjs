// Settings: each page shows its data, changes it, explains itself while it is empty, and recovers from errors.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import { violations } from './lib/axe.mjs'
import { Chat } from './lib/chat.mjs'
import { call, jwt, Model, Server, test, token, until, Visitor } from './lib/index.mjs'
import { atEnd, within } from './lib/server.mjs'

const tab = (page, name) => page.getByRole('tab', { name, exact: true }).click()

test('rules, webhooks, idle prompts and the audit are seen and changed', async (t) => {
  const model = await Model.start(t)
  const touch = { toolCalls: [call('shell', { command: ['touch', 'made.txt'] })] }
  model.script('make a file', touch, 'Made.')
  const server = await Server.start(t, { env: { ...model.env, PARLEY_WEBHOOK_ALLOW: '127.0.0.1' } })
  const visitor = await Visitor.come(t, server)
  visitor.expect(/500/)
  const page = await visitor.tab('/settings')

  // The overview lists every part. An empty part explains its purpose.
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
  await hook.getByRole('link').waitFor() // it is linked to a conversation

  // A test shows the receiver's answer. The receiver gets a message that is signed like any other.
  const receiver = await receive(t, (request, response) => response.writeHead(202).end('taken ' + 'x'.repeat(2000)))
  await page.getByLabel('Address').fill(receiver.url)
  await page.getByRole('button', { name: 'Add the webhook' }).click()
  const signing = await page.getByRole('status').getByText(/^whsec_/).textContent()
  await hook.getByText(receiver.url).waitFor()
  await hook.getByRole('button', { name: 'Send a test' }).click()
  await hook.getByText(/^Status 202 after \d+ ms\.$/).waitFor()
  assert.equal((await hook.getByText(/^taken x+$/).textContent()).length, 1024)
  const [sample] = receiver.got
  const bytes = Buffer.from(signing.trim().replace('whsec_', ''), 'base64')
  const signed = `${sample.headers['webhook-id']}.${sample.headers['webhook-timestamp']}.${sample.body}`
  const signature = 'v1,' + createHmac('sha256', bytes).update(signed).digest('base64')
  assert.equal(sample.headers['webhook-signature'], signature)
  assert.equal(JSON.parse(sample.body).type, 'test')
  assert.deepEqual(await violations(page), [])
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

  // The audit lists all of it, in pages and by kind. After a failure, the page offers a retry.
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
  await page.getByRole('button', { name: 'Show everything' }).click()
  await until('everything is back', async () => (await records.count()) >= 50)
  const [{ id }] = (await server.ask('GET', '/api/v1/sessions')).sessions
  await page.getByRole('textbox', { name: 'Conversation' }).fill(`${server.url}/chat/${id}`)
  await page.getByRole('button', { name: 'Filter' }).click()
  const actions = await within(
    (async () => {
      await until('those of the conversation are left', async () => (await records.count()) < 50)
      await records.getByText('Webhook tested').waitFor()
      return records.allTextContents()
    })(),
    'the records of a conversation',
  )
  assert(!actions.some((text) => text.includes('Settings changed')), actions.join('; '))
  await page.getByLabel('Until').fill('2020-01-01T00:00')
  await page.getByRole('button', { name: 'Filter' }).click()
  await page.getByRole('heading', { name: 'No record matches' }).waitFor()
  assert.deepEqual(await violations(page), [])
})

// receive starts a webhook receiver on this machine.
async function receive(t, answer) {
  const got = []
  const server = createServer(async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    got.push({ headers: request.headers, body: Buffer.concat(chunks).toString() })
    answer(request, response)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(t, () => new Promise((resolve) => server.close(resolve)))
  return { got, url: `http://127.0.0.1:${server.address().port}/hook` }
}

test('people are listed, and their tokens are revoked', async (t) => {
  const server = await Server.start(t, { env: jwt })
  const ann = token('ann', 'org_admin')
  const bob = token('bob', 'standard_user')
  await server.ask('POST', '/api/v1/sessions', { token: bob, body: { title: 'Of bob' } })
  // More records of other users than one page of the audit holds.
  const change = (turns) => server.ask('PATCH', '/api/v1/settings', { token: ann, body: { turns } })
  for (let i = 0; i < 210; i += 10) await Promise.all(Array.from({ length: 10 }, (_, n) => change(2 + i + n)))
  const visitor = await Visitor.come(t, server, { tolerate: [/401/] })
  const page = await visitor.tab('/settings#people')
  await page.getByLabel('Access token').fill(ann)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('ann · org_admin').waitFor()
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
