// The link of a message leads to it those who may read the conversation, after they have signed in, and nobody else.
import assert from 'node:assert/strict'
import { Chat } from './lib/chat.mjs'
import { jwt, Server, test, token, Visitor } from './lib/index.mjs'
import { clientID, startIssuer } from './lib/issuer.mjs'

async function signIn(t, server, at, user, role) {
  const visitor = await Visitor.come(t, server, { tolerate: [/40[134]/] })
  await visitor.context.grantPermissions(['clipboard-read', 'clipboard-write'])
  const page = await visitor.tab(at)
  await page.getByLabel('Access token').fill(token(user, role))
  await page.getByRole('button', { name: 'Sign in with this token' }).click()
  await page.getByText(`${user} · ${role}`).waitFor()
  return page
}

test('a shared link leads to its message, for users who may read it', async (t) => {
  const server = await Server.start(t, { env: jwt })
  const page = await signIn(t, server, '/', 'ann', 'standard_user')
  const chat = new Chat(page)
  await chat.say('say the first thing')
  await chat.ended('the first thing')
  await page.getByRole('button', { name: 'Conversation actions' }).click()
  await page.getByRole('menuitem', { name: 'Copy the link' }).click()
  await page.getByText('The link is copied. You and the administrators of your organisation can read it.').waitFor()
  const whole = await page.evaluate(() => navigator.clipboard.readText())
  assert.equal(whole, page.url().split('#')[0])
  const said = chat.log.getByRole('article', { name: 'You said' })
  await said.hover()
  await said.getByRole('button', { name: 'Copy the link to this message' }).click()
  await page.waitForFunction((old) => navigator.clipboard.readText().then((text) => text !== old), whole)
  const link = await page.evaluate(() => navigator.clipboard.readText())

  const root = new Chat(await signIn(t, server, link, 'root', 'org_admin'))
  await root.log.locator('[data-found]').getByText('say the first thing').waitFor()
  await root.answers.getByText('the first thing').waitFor()

  const eve = await signIn(t, server, link, 'eve', 'standard_user')
  await eve.getByText('Conversation not found').waitFor()
  await eve.getByText('It was deleted, or it belongs to another user.').waitFor()
  assert(!(await eve.locator('body').innerText()).includes('the first thing'), 'another user reads it')
})

test('a shared link survives a sign-in at a provider', async (t) => {
  const issuer = await startIssuer(t)
  const oidc = {
    PARLEY_OIDC_ISSUER: issuer,
    PARLEY_OIDC_CLIENT_ID: clientID,
    PARLEY_OIDC_ROLES_CLAIM: 'groups',
    PARLEY_OIDC_ROLES: 'staff=standard_user',
  }
  const server = await Server.start(t, { env: { ...jwt, ...oidc } })
  const ann = token('ann', 'standard_user')
  const { id } = await server.ask('POST', '/api/v1/sessions', { token: ann, body: {} })
  const body = { content: 'say hello' }
  const { first: seq } = await server.ask('POST', `/api/v1/sessions/${id}/inputs`, { token: ann, body })
  await server.finished(id, ann)
  const visitor = await Visitor.come(t, server, { tolerate: [/401/] })
  const page = await visitor.tab(`/chat/${id}#m${seq}`)
  await page.getByRole('link', { name: /^Sign in with/ }).click()
  await page.getByRole('button', { name: 'Continue as ann' }).click()
  await page.waitForURL(`${server.url}/chat/${id}#m${seq}`)
  await new Chat(page).log.locator('[data-found]').getByText('say hello').waitFor()

  // A list with its filters, and a page about two runs, have their parameters in the address.
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('link', { name: /^Sign in with/ }).waitFor()
  await page.goto('/runs?status=failed')
  await page.getByRole('link', { name: /^Sign in with/ }).click()
  await page.getByRole('button', { name: 'Continue as ann' }).click()
  await page.getByText('No run of this time matches these filters.').waitFor()
  assert.equal(await page.getByRole('combobox', { name: 'Status' }).inputValue(), 'failed')
})
