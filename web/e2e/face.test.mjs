// The look of the console: its type, its agents, its words, its diffs, and its layout on a phone.
import assert from 'node:assert/strict'
import { Chat } from './lib/chat.mjs'
import { call, Model, Server, test, until, Visitor } from './lib/index.mjs'

const lines = Array.from({ length: 40 }, (_, at) => `var line${at + 1} = ${at + 1} // of forty`)
const coder = '---\nname: coder\ndescription: writes code\n---\nWrite code.\n'

test('fonts, agent marks, labels and diffs are consistent, and a phone has one header', async (t) => {
  const model = await Model.start(t)
  const edit = (at) =>
    call('edit_file', { path: 'cache.go', old_text: `var line${at} = ${at} //`, new_text: `var line${at} = 0 //` })
  model.script('fix it', { toolCalls: [edit(3)] }, { toolCalls: [edit(33)] }, 'Both are fixed.')
  const server = await Server.start(t, {
    env: model.env,
    files: { 'agents/coder.md': coder, 'cache.go': `package cache\n${lines.join('\n')}\n` },
    git: true,
  })
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/agents')
  const hue = (where) =>
    where
      .locator('[data-agent-glyph="coder"]')
      .first()
      .evaluate((e) => e.style.getPropertyValue('--hue'))
  const own = await hue(page)
  assert.match(own, /^\d+$/)
  await until('the font has come', () => page.evaluate(() => document.fonts.check('16px "Inter Variable"')))
  assert.match(await page.evaluate(() => getComputedStyle(document.body).fontFamily), /^"?Inter Variable/)

  await page.goto('/')
  const chat = new Chat(page)
  await chat.say('@coder please fix it')
  await chat.log.getByRole('article', { name: 'coder wants to edit cache.go' }).waitFor()
  assert.equal(await hue(chat.log), own, 'the agent looks different here')
  assert(!(await chat.log.innerText()).includes('edit_file'), 'the name of a tool is in the conversation')

  // On a phone.
  const phone = await Visitor.come(t, server, { width: 390, height: 844 })
  const small = new Chat(await phone.tab(page.url()))
  await small.card.waitFor()
  const tops = await small.page.evaluate(() =>
    [...document.querySelectorAll('button[aria-label^="Menu"], main h1')].map((e) => {
      const { top, bottom } = e.getBoundingClientRect()
      return Math.round((top + bottom) / 2)
    }),
  )
  assert(Math.abs(tops[0] - tops[1]) <= 4, `the menu and the title are at ${tops}`)
  const little = () => tooSmall(small.page)
  const all = [await little()]
  for (const path of ['/agents', '/approvals', '/runs', '/settings']) {
    await small.page.goto(path)
    await small.page.getByRole('heading', { level: 1 }).first().waitFor()
    all.push(await little())
  }
  await small.page.getByRole('button', { name: /^Menu/ }).click()
  await small.page.getByRole('dialog', { name: 'Menu' }).getByRole('link', { name: 'Agents' }).waitFor()
  all.push(await little())
  assert.deepEqual(all.filter((one) => !one.endsWith(': ')), [])

  // Both changes are in one diff, with numbers, colours, and a line between them.
  for (let i = 0; i < 2; i++) await chat.card.getByRole('button', { name: 'Allow once' }).click()
  await chat.ended('Both are fixed.')
  await page.goto('/files?path=cache.go')
  await page.getByRole('button', { name: 'Show the last change' }).click()
  const diff = page.getByRole('region', { name: /Changes of cache.go/ })
  await diff.getByText('⋯').nth(1).waitFor()
  await diff.getByText('line 31').waitFor()
  await until('it is coloured', async () => (await diff.locator('code span.text-accent').count()) > 0)
  assert.equal(await diff.getByRole('img', { name: 'added' }).count(), 2)
})

// tooSmall lists the controls on a phone that are lower than 44 pixels.
async function tooSmall(page) {
  const found = await page.evaluate(() =>
    [...document.querySelectorAll('button, select, a[class*="flex"], [role="menuitem"], [role="option"]')]
      .filter((e) => e.tagName !== 'OPTION')
      .filter((e) => e.checkVisibility({ opacityProperty: true }) && e.getClientRects().length > 0)
      .map((e) => [e.getAttribute('aria-label') || e.textContent, e.getBoundingClientRect()])
      .filter(([, box]) => box.width > 1 && box.height < 43.5)
      .map(([name, box]) => `${name} (${Math.round(box.height)} px)`),
  )
  return `${new URL(page.url()).pathname}: ${found.join(', ')}`
}

test('on a phone, branches, menus, files and results are large enough for a thumb, and no key is named', async (t) => {
  const model = await Model.start(t)
  model
    .script('say one', 'Here is `-race`:\n\n```go\nfunc main() {}\n```')
    .script('make a file', { toolCalls: [call('shell', { command: ['touch', 'made'] })] }, 'Made.')
  const server = await Server.start(t, { env: model.env, files: { 'src/main.go': 'package main\n' } })
  const visitor = await Visitor.come(t, server, { width: 390, height: 844 })
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  const all = []
  const look = async () => all.push(await tooSmall(page))
  await chat.say('Please say one')
  await chat.ended('Here is')
  await chat.answers.getByRole('button', { name: 'Answer again, in a branch' }).click()
  await page.getByRole('navigation', { name: 'Branch 2 of 2' }).waitFor()
  await chat.ended('Here is')
  await look()
  await page.getByRole('button', { name: 'Conversation actions' }).click()
  await page.getByRole('menuitem', { name: 'Copy the link' }).waitFor()
  await look()
  await page.keyboard.press('Escape')
  await chat.say('Please make a file')
  const allow = chat.card.getByRole('button', { name: 'Allow once' })
  await allow.waitFor()
  assert.doesNotMatch(await chat.card.innerText(), /[↵⌫]/, 'a key is named where there is no keyboard')
  await look()
  await page.goto('/files')
  await page.getByRole('button', { name: 'src' }).click()
  await page.getByRole('link', { name: 'main.go' }).waitFor()
  await look()
  await page.getByRole('button', { name: /^Menu/ }).click()
  const rail = page.getByRole('dialog', { name: 'Menu' })
  await rail.getByRole('button', { name: /^Actions for/ }).first().click()
  await page.getByRole('menuitem', { name: 'Rename' }).waitFor()
  await look()
  await page.keyboard.press('Escape')
  assert.doesNotMatch(await rail.innerText(), /Ctrl/, 'a key is named where there is no keyboard')
  await rail.getByRole('button', { name: 'Open the command palette' }).click()
  await page.getByRole('option').first().waitFor()
  await look()
  assert.deepEqual(all.filter((one) => !one.endsWith(': ')), [])
  await page.goto('/settings#audit')
  const tab = page.getByRole('tab', { name: 'Audit' })
  await until('the chosen tab is in view', async () => {
    const { x, width } = await tab.boundingBox()
    return x >= 0 && x + width <= 390
  })
})

test('the mark is the icon of the page, and motion respects its setting', async (t) => {
  const model = await Model.start(t)
  model.always('a story', 'Once upon a time. The end.')
  const server = await Server.start(t, { env: model.env })
  for (const reducedMotion of ['no-preference', 'reduce']) {
    const visitor = await Visitor.come(t, server, { reducedMotion })
    const page = await visitor.tab('/')
    const icon = await page.locator('link[rel="icon"]').getAttribute('href')
    const mark = page.locator('header svg path').first()
    await mark.waitFor({ state: 'attached' })
    const drawn = await (await fetch(server.url + icon)).text()
    assert(drawn.includes(await mark.getAttribute('d')), 'the icon is another drawing')
    const chat = new Chat(page)
    const hold = model.hold('a story', 0)
    await chat.say('Tell me a story')
    const word = chat.log.getByText('Waiting for the model')
    await word.waitFor()
    const dot = word.locator('.animate-pulse').first()
    const moves = await dot.evaluate((element) => getComputedStyle(element).animationDuration)
    if (reducedMotion === 'reduce') assert(Number.parseFloat(moves) < 0.001, `it moves for ${moves}`)
    else assert.equal(moves, '2s')
    hold.release()
    await chat.ended('The end.')
  }
})
