import assert from 'node:assert/strict'
import { Server, test, until, Visitor, whileAway } from './lib/index.mjs'
import { Rail } from './lib/shell.mjs'

async function withSessions(t, ...titles) {
  const server = await Server.start(t)
  for (const title of titles) await server.ask('POST', '/api/v1/sessions', { body: { title } })
  return server
}

test('conversations are searched, renamed and deleted in the rail', async (t) => {
  const server = await withSessions(t, 'Fix the flaky test', 'Notes')
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab()
  const rail = new Rail(page)
  await rail.conversation('Notes').waitFor()
  await rail.search.fill('flaky')
  await rail.conversation('Notes').waitFor({ state: 'detached' })
  await rail.conversation('Fix the flaky test').waitFor()
  await rail.search.press('Escape')
  await rail.conversation('Notes').waitFor()

  await rail.act('Notes', 'Rename')
  await page.getByRole('textbox', { name: 'New name' }).fill('Shopping')
  await page.keyboard.press('Enter')
  await rail.conversation('Shopping').waitFor()

  await rail.conversation('Shopping').click()
  await until('the tab has its name', async () => (await page.title()) === 'Shopping · Parley')
  await rail.act('Shopping', 'Delete')
  const sure = page.getByRole('alertdialog', { name: 'Delete this conversation?' })
  await sure.getByRole('button', { name: 'Keep it' }).click()
  await rail.conversation('Shopping').waitFor()
  await rail.act('Shopping', 'Delete')
  await sure.getByRole('button', { name: 'Delete' }).click()
  await rail.conversation('Shopping').waitFor({ state: 'detached' })
  await page.waitForURL(server.url + '/')
  const { sessions } = await server.ask('GET', '/api/v1/sessions')
  assert.deepEqual(
    sessions.map((s) => s.title),
    ['Fix the flaky test'],
  )
})

test('changes in another tab are shown at once', async (t) => {
  const server = await withSessions(t)
  const visitor = await Visitor.come(t, server)
  const one = new Rail(await visitor.tab())
  const two = new Rail(await visitor.tab('/agents'))
  await one.conversations.getByText('Your conversations appear here').waitFor()
  await one.page.getByText('online', { exact: true }).waitFor()
  await two.page.getByText('online', { exact: true }).waitFor()
  await server.ask('POST', '/api/v1/sessions', { body: { title: 'Made elsewhere' } })
  await one.conversation('Made elsewhere').waitFor()
  await two.act('Made elsewhere', 'Rename')
  await two.page.getByRole('textbox', { name: 'New name' }).fill('Renamed')
  await two.page.keyboard.press('Enter')
  await one.conversation('Renamed').waitFor()
})

// leaveField waits until the composer has the focus, and blurs it: letters would be typed there.
async function leaveField(page) {
  await until('the field has the focus', () => page.evaluate(() => document.activeElement?.tagName === 'TEXTAREA'))
  await page.evaluate(() => document.activeElement.blur())
}

test('everything is reached with the keyboard', async (t) => {
  const server = await withSessions(t, 'First', 'Second')
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/settings')
  const rail = new Rail(page)
  await rail.conversation('Second').waitFor()

  await page.keyboard.press('Tab')
  await page.getByRole('link', { name: 'Skip to the main content' }).press('Enter')
  await until('the page has the focus', () => page.evaluate(() => document.activeElement?.id === 'main'))

  await page.keyboard.press('Control+k')
  await rail.palette.waitFor()
  await page.keyboard.type('first')
  await rail.palette.getByRole('option', { name: 'First', selected: true }).waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL('**/chat/*')
  await until('the tab has its name', async () => (await page.title()) === 'First · Parley')

  await leaveField(page)
  await page.keyboard.press('k') // the latest is above
  await until('the conversation above', async () => (await page.title()) === 'Second · Parley')
  await leaveField(page)
  await page.keyboard.press('j')
  await until('the conversation below', async () => (await page.title()) === 'First · Parley')

  await leaveField(page)
  await page.keyboard.press('g')
  await page.keyboard.press('a')
  await page.waitForURL('**/agents')

  await page.keyboard.press('?')
  await rail.help.getByText('Open the command palette').waitFor()
  await until('the list has the focus, not its cross', () => rail.help.evaluate((e) => e === document.activeElement))
  await rail.help.getByRole('checkbox', { name: 'Turn on single-key shortcuts' }).uncheck()
  await page.keyboard.press('Escape')
  await rail.help.waitFor({ state: 'detached' })
  await page.keyboard.press('g')
  await page.keyboard.press('r')
  await page.keyboard.press('Control+k')
  await rail.palette.waitFor()
  assert.equal(new URL(page.url()).pathname, '/agents', 'letters were turned off')
})

test('on a phone the rail is a drawer', async (t) => {
  const server = await withSessions(t, 'First')
  const visitor = await Visitor.come(t, server, { width: 390, height: 844 })
  const page = await visitor.tab('/settings')
  const menu = page.getByRole('button', { name: 'Menu' })
  await menu.click()
  const drawer = page.getByRole('dialog', { name: 'Menu' })
  await drawer.getByRole('link', { name: 'First' }).click()
  await page.waitForURL('**/chat/*')
  await drawer.waitFor({ state: 'detached' })
  for (const path of ['/', '/agents', '/approvals', '/runs', '/settings']) {
    await page.goto(path)
    await menu.waitFor()
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    assert.equal(wide, 0, `${path} is wider than a phone`)
  }
})

test('light, dark, and as the machine has it', async (t) => {
  const server = await withSessions(t)
  const visitor = await Visitor.come(t, server, { dark: true })
  const page = await visitor.tab()
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme)
  assert.equal(await theme(), 'dark')
  await page.getByRole('button', { name: 'Theme: system. Change to light' }).click()
  await until('it is light', async () => (await theme()) === 'light')
  await page.reload()
  assert.equal(await theme(), 'light')
  await page.getByRole('button', { name: 'Theme: light. Change to dark' }).click()
  await until('it is dark', async () => (await theme()) === 'dark')
  await page.getByRole('button', { name: 'Theme: dark. Change to system' }).click()
  await page.emulateMedia({ colorScheme: 'light' })
  await until('it is light with the machine', async () => (await theme()) === 'light')
})

test('a lost connection is shown, and so is its return', async (t) => {
  const server = await withSessions(t, 'Before')
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/settings')
  const rail = new Rail(page)
  await page.getByText('online', { exact: true }).waitFor()
  visitor.expect(whileAway)
  await server.stop()
  await page.getByText('Offline: no connection to the server since').waitFor()
  await rail.conversation('Before').waitFor() // it is still there
  await server.launch()
  await server.ask('POST', '/api/v1/sessions', { body: { title: 'Meanwhile' } })
  await page
    .getByRole('button', { name: 'Try now' })
    .click({ timeout: 2_000 })
    .catch(() => {}) // it may have been faster
  await page.getByText('Offline: no connection').waitFor({ state: 'detached' })
  await page.getByText('online', { exact: true }).waitFor()
  await rail.conversation('Meanwhile').waitFor()
})

test('an unknown address has an explanation', async (t) => {
  const server = await withSessions(t)
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/agents')
  await page.evaluate(() => {
    history.pushState({}, '', '/nowhere')
    dispatchEvent(new PopStateEvent('popstate'))
  })
  await page.getByRole('heading', { name: 'Page not found' }).waitFor()
  await page.getByRole('link', { name: 'Start a conversation' }).click()
  await page.waitForURL(server.url + '/')
})
