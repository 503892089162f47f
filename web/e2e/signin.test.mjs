import assert from 'node:assert/strict'
import { jwt, Server, test, token, until, Visitor } from './lib/index.mjs'
import { clientID, startIssuer } from './lib/issuer.mjs'
import { Rail } from './lib/shell.mjs'

const refused = /401 \(Unauthorized\)/ // the browser always logs this status on the console

test('a user pastes a token, and is signed out if it is wrong or has expired', async (t) => {
  const server = await Server.start(t, { env: jwt })
  const visitor = await Visitor.come(t, server, { tolerate: [refused] })
  const page = await visitor.tab('/agents')
  await page.getByRole('heading', { name: 'Sign in to Parley' }).waitFor()
  assert.equal(await page.getByRole('link', { name: 'Sign in with' }).count(), 0, 'nobody is named to sign in with')
  const field = page.getByLabel('Access token')
  await field.fill('eyJ.not.one')
  await field.press('Enter')
  await page.getByRole('alert').getByText('This token was not accepted').waitFor()
  await field.fill(token('ann', 'standard_user'))
  await page.getByRole('button', { name: 'Sign in with this token' }).click()
  const rail = new Rail(page)
  await page.getByText('ann · standard_user').waitFor()
  await page.getByText('online', { exact: true }).waitFor() // connected with a ticket
  visitor.expect(/WebSocket/) // ends with the session
  assert.equal(new URL(page.url()).pathname, '/agents')

  // A cookie that scripts cannot read keeps the user signed in, in all tabs, also after a restart of the server.
  const [cookie, ...others] = await visitor.context.cookies()
  assert.deepEqual([others, cookie.httpOnly, cookie.sameSite, cookie.path], [[], true, 'Strict', '/'])
  assert(cookie.expires > Date.now() / 1000 + 3000, 'the cookie ends with the browser')
  const kept = () => page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]))
  assert.equal((await kept()).includes('eyJ'), false)
  const other = await visitor.tab('/')
  await other.getByText('ann · standard_user').waitFor()

  // Signing out in one tab ends the session in all tabs, and revokes copies of the cookie.
  await other.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in to Parley' }).waitFor()
  const copy = await fetch(`${server.url}/api/v1/me`, { headers: { Cookie: `parley_session=${cookie.value}` } })
  assert.equal(copy.status, 401)
  await until('the cookie is gone', async () => (await visitor.context.cookies()).length === 0)

  await field.fill(token('ann', 'standard_user'))
  await field.press('Enter')
  await page.getByText('ann · standard_user').waitFor()
  await other.getByText('ann · standard_user').waitFor() // the other tab has been told
  await other.close()
  await server.ask('POST', '/api/v1/users/ann/revoke', { token: token('root', 'org_admin'), body: {} })
  await page.getByRole('heading', { name: 'Sign in to Parley' }).waitFor()
  await rail.pages.waitFor({ state: 'detached' })
})

test('actions that a role does not permit are not offered', async (t) => {
  const server = await Server.start(t, { env: jwt })
  await server.ask('POST', '/api/v1/sessions', { token: token('eve', 'standard_user'), body: { title: 'Hers' } })
  const visitor = await Visitor.come(t, server, { tolerate: [refused] })
  const page = await visitor.tab()
  await page.getByLabel('Access token').fill(token('eve', 'read_only'))
  await page.getByRole('button', { name: 'Sign in with this token' }).click()
  const rail = new Rail(page)
  await rail.conversation('Hers').waitFor()
  assert.equal(await page.getByRole('button', { name: 'New conversation' }).count(), 0)
  await page.getByRole('button', { name: 'Actions for Hers' }).press('Enter')
  await page.getByRole('menuitem', { name: 'Pin' }).waitFor() // the pin is a mark in the user's own list
  assert.deepEqual(await page.getByRole('menuitem').allTextContents(), ['Pin', 'Archive'])
  await page.keyboard.press('Escape')
  await page.getByRole('menu').waitFor({ state: 'detached' })
  await rail.conversation('Hers').click()
  await page.getByText('Your role can read conversations').waitFor()
  assert.equal(await page.getByLabel(/^Message /).count(), 0)
  await rail.goTo('Settings')
  await page.getByRole('heading', { name: 'Settings' }).waitFor()
  assert.equal(await page.getByRole('button', { name: 'Save' }).count(), 0)
})

function withIssuer(issuer) {
  return {
    ...jwt,
    PARLEY_OIDC_ISSUER: issuer,
    PARLEY_OIDC_CLIENT_ID: clientID,
    PARLEY_OIDC_ROLES_CLAIM: 'groups',
    PARLEY_OIDC_ROLES: 'staff=standard_user',
  }
}

test('people sign in at their provider, and stay so across tabs', async (t) => {
  const issuer = await startIssuer(t)
  const server = await Server.start(t, { env: withIssuer(issuer) })
  const visitor = await Visitor.come(t, server, { tolerate: [refused] })
  const page = await visitor.tab('/agents')
  await page.getByRole('link', { name: `Sign in with ${new URL(issuer).host}` }).click()
  await page.getByRole('button', { name: 'Continue as ann' }).click()
  await page.waitForURL(server.url + '/agents')
  await page.getByText('ann · standard_user').waitFor()
  await page.getByText('online', { exact: true }).waitFor()

  const cookie = (await visitor.context.cookies()).find((c) => c.name === 'parley_session')
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, 'Strict', '/'])
  assert.equal((await visitor.context.cookies()).length, 1)
  assert.equal(
    await page.evaluate(() =>
      /eyJ|parley/.test(document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage })),
    ),
    false,
  )

  const second = await visitor.tab('/settings')
  await second.getByText('ann · standard_user').waitFor()

  // A page of another site sends requests to the server, without effect.
  const evil = await visitor.tab(issuer + '/authorize')
  visitor.expect(/.*/)
  const outcomes = await evil.evaluate(async (server) => {
    const tries = [
      fetch(`${server}/api/v1/sessions`, {
        method: 'POST',
        credentials: 'include',
        mode: 'no-cors',
        headers: { 'Content-Type': 'text/plain' },
        body: '{}',
      }),
      fetch(`${server}/api/v1/sessions`, {
        method: 'POST',
        credentials: 'include',
        headers: { 'Content-Type': 'application/json' },
        body: '{}',
      }),
      fetch(`${server}/api/v1/sessions`, { credentials: 'include' }),
      new Promise((resolve, reject) => {
        const socket = new WebSocket(`${server.replace('http', 'ws')}/api/events`)
        socket.onopen = resolve
        socket.onerror = () => reject(new Error('refused'))
      }),
    ]
    return (await Promise.allSettled(tries)).map((o) =>
      o.status === 'fulfilled' ? (o.value?.type ?? 'open') : 'failed',
    )
  }, server.url)
  assert.deepEqual(outcomes, ['failed', 'failed', 'failed', 'failed'])
  const form = await evil.evaluate((server) => {
    document.body.innerHTML = `<form method="post" action="${server}/auth/logout"><button>x</button></form>`
    document.querySelector('button').click()
  }, server.url)
  assert.equal(form, undefined)
  await evil.waitForURL(server.url + '/auth/logout')
  await evil.close()

  // A socket of the console's own page cannot be opened with the cookie either.
  const socket = await page.evaluate(
    () =>
      new Promise((resolve) => {
        const ws = new WebSocket(`${location.origin.replace('http', 'ws')}/api/events`)
        ws.onopen = () => resolve('open')
        ws.onerror = () => resolve('refused')
      }),
  )
  assert.equal(socket, 'refused')
  const { sessions } = await server.ask('GET', '/api/v1/sessions', { token: token('root', 'org_admin') })
  assert.deepEqual(sessions, [], 'somebody was acted for')

  await page.reload()
  await page.getByText('ann · standard_user').waitFor() // the other site did not sign the user out
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in to Parley' }).waitFor()
  await until('the cookie is gone', async () => (await visitor.context.cookies()).length === 0)
})

test('a user without a role gets an explanation', async (t) => {
  const issuer = await startIssuer(t)
  const server = await Server.start(t, { env: withIssuer(issuer) })
  const visitor = await Visitor.come(t, server, { tolerate: [refused] })
  const page = await visitor.tab('/')
  await page.getByRole('link', { name: 'Sign in with' }).click()
  await page.getByRole('button', { name: 'Continue as eve' }).click()
  await page.getByRole('alert').getByText('You have no role on this server').waitFor()
  await until('nobody is signed in', async () => (await visitor.context.cookies()).length === 0)
  await page.goto('/?sign_in=%3Cb%3EGive%20me%20your%20password')
  await page.getByRole('heading', { name: 'Sign in to Parley' }).waitFor()
  assert.equal(await page.getByRole('alert').count(), 0, 'an address has the page say things')
})

// The usual limits are for clients with one socket. The console opens one for
// each conversation that the user views.
test('the default limits suffice for browsing through conversations', async (t) => {
  const { PARLEY_AUTH, PARLEY_JWT_SECRET } = jwt
  const server = await Server.start(t, { env: { PARLEY_AUTH, PARLEY_JWT_SECRET } })
  const ann = token('ann', 'standard_user')
  for (let i = 0; i < 12; i++)
    await server.ask('POST', '/api/v1/sessions', { token: ann, body: { title: `Number ${i}` } })
  const visitor = await Visitor.come(t, server, { tolerate: [/401/] })
  const page = await visitor.tab('/')
  for (let i = 0; i < 12; i++) {
    await page.reload() // page loads before the sign-in do not use up a limit
    await page.getByLabel('Access token').waitFor()
  }
  await page.getByLabel('Access token').fill(ann)
  await page.getByRole('button', { name: 'Sign in with this token' }).click()
  const rail = new Rail(page)
  for (let i = 0; i < 12; i++) {
    await rail.conversations.getByRole('link', { name: `Number ${i}`, exact: true }).click()
    await page.getByText('No messages yet').waitFor()
    await page.getByText('online', { exact: true }).waitFor()
  }
})
