// Requirements for every page: it is accessible, it is small, and text from
// models is only data.
import assert from 'node:assert/strict'
import { looks, violations } from './lib/axe.mjs'
import { Chat } from './lib/chat.mjs'
import { call, jwt, Model, Server, test, until, Visitor } from './lib/index.mjs'
import { Rail } from './lib/shell.mjs'

for (const [name, look] of Object.entries(looks)) {
  test(`nothing serious is found by axe, ${name}`, async (t) => {
    const model = await Model.start(t)
    const items = [
      { title: 'Look', status: 'done' },
      { title: 'Fix', status: 'in_progress' },
    ]
    model.script(
      'everything',
      {
        content:
          '# Hello\n\n`code` and [a link](https://example.com)\n\n```go\nfunc main() {}\n```\n\n' +
          '| a | b |\n|---|---|\n| 1 | 2 |',
        toolCalls: [
          call('update_plan', { summary: 'A plan', items }),
          call('shell', { command: ['rm', '-rf', 'build'] }),
        ],
      },
      'Done.',
    )
    const server = await Server.start(t, { env: model.env, files: { 'notes.md': '# Notes\n' } })
    const visitor = await Visitor.come(t, server, { ...look, tolerate: [/404/] })
    const page = await visitor.tab('/')
    const found = {}
    const look_at = async (where) => {
      const serious = await violations(page)
      if (serious.length > 0) found[where] = serious
    }
    const chat = new Chat(page)
    await chat.field.waitFor()
    await look_at('/')
    await chat.say('Show me everything')
    await chat.card.waitFor()
    await chat.log.getByRole('heading', { name: 'Hello' }).waitFor()
    await look_at('/chat')
    const { runs } = await server.ask('GET', '/api/v1/runs')
    for (const path of [
      '/agents',
      '/agents/helpful-assistant',
      '/approvals',
      '/runs',
      `/runs/${runs[0].id}`,
      `/runs/compare?a=${runs[0].id}&b=${runs[0].id}`,
      '/files',
      '/files?path=notes.md',
      '/nowhere',
      '/settings',
      ...['general', 'models', 'grants', 'tools', 'skills', 'autonomy', 'webhooks', 'people', 'audit', 'nodes'].map(
        (id) => `/settings#${id}`,
      ),
    ]) {
      await page.goto(path)
      await page.getByRole('heading', { level: 1 }).first().waitFor()
      await until(
        `${path} has loaded`,
        async () =>
          (await page
            .getByRole('main')
            .getByText(/^Loading/)
            .count()) === 0,
      )
      await look_at(path.replaceAll(runs[0].id, '{id}'))
    }
    await page.goto(`/runs/${runs[0].id}`)
    await page.getByRole('button', { name: 'Step through the session' }).click()
    await page.getByRole('region', { name: 'The session at this event' }).waitFor()
    await page.getByRole('region', { name: 'Model calls' }).getByRole('button', { name: /^Turn 1/ }).click()
    await page.getByText('Everything here is what was sent').waitFor()
    await look_at('a prompt and a replay')
    const rail = new Rail(page)
    await page.keyboard.press('Control+k')
    await rail.palette.getByRole('option').first().waitFor()
    await look_at('the palette')
    await page.keyboard.press('Escape')
    await rail.palette.waitFor({ state: 'detached' })
    await page.keyboard.press('?')
    await rail.help.waitFor()
    await look_at('the shortcuts')
    assert.deepEqual(found, {})
  })
}

test('nothing serious is found by axe where one signs in', async (t) => {
  const server = await Server.start(t, { env: jwt })
  for (const look of Object.values(looks)) {
    const visitor = await Visitor.come(t, server, { ...look, tolerate: [/401/] })
    const page = await visitor.tab('/')
    await page.getByLabel('Access token').waitFor()
    assert.deepEqual(await violations(page), [], JSON.stringify(look))
  }
})

test('the first page needs at most 200 KB of JavaScript, and nothing from elsewhere', async (t) => {
  const server = await Server.start(t)
  const visitor = await Visitor.come(t, server)
  const page = await visitor.context.newPage()
  const cdp = await visitor.context.newCDPSession(page)
  await cdp.send('Network.enable')
  const scripts = new Map() // by request: size on the wire, compressed
  const elsewhere = []
  cdp.on('Network.responseReceived', (e) => {
    if (!e.response.url.startsWith(server.url) && !e.response.url.startsWith('data:')) elsewhere.push(e.response.url)
    if (e.type === 'Script') scripts.set(e.requestId, { url: e.response.url, bytes: 0 })
  })
  cdp.on('Network.loadingFinished', (e) => {
    const script = scripts.get(e.requestId)
    if (script) script.bytes = e.encodedDataLength
  })
  await page.goto('/')
  await new Chat(page).field.waitFor()
  await page.waitForLoadState('networkidle')
  const list = [...scripts.values()]
  const sum = list.reduce((n, s) => n + s.bytes, 0)
  t.diagnostic(`${Math.round(sum / 1024)} KB in ${list.length} files`)
  assert(list.length > 0 && list.every((s) => s.bytes > 0), 'sizes are not known')
  assert(sum <= 200 * 1024, `${sum} bytes: ${JSON.stringify(list)}`)
  assert.deepEqual(elsewhere, [])
})

const hostile = [
  '<script>window.pwned = 1</script><img src=x onerror="window.pwned = 2"><svg onload="window.pwned = 3">',
  '[click](javascript:window.pwned=4) [again](JaVaScRiPt&colon;window.pwned=5) <a ' +
    'href="javascript:window.pwned=6">html</a> [data](data:text/html,<script>1</script>)',
  '![picture](https://evil.example.com/track.png) ![svg](data:image/svg+xml,<svg onload="window.pwned=7"/>)',
  '\u001b[31mred\u001b[0m and \u202eevil\u202c and \u2066iso\u2069',
  '<style>* { display: none }</style><iframe src="https://evil.example.com"></iframe><base ' +
    'href="https://evil.example.com/"><form action="https://evil.example.com"><button>x</button></form>',
].join('\n\n')

test('a hostile answer does nothing', async (t) => {
  const model = await Model.start(t)
  model.script(
    'be evil',
    {
      content: hostile,
      toolCalls: [call('shell', { command: ['echo', 'safe\u202egnp.exe', '<img src=x onerror=1>'] })],
    },
    'Done.',
  )
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server)
  const asked = []
  visitor.context.on('request', (r) => !r.url().startsWith(server.url) && asked.push(r.url()))
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  await chat.say('Please be evil\u202e <b>now</b>')
  await chat.ended('Done.')
  for (const link of await chat.log.getByRole('link').all()) {
    const to = await link.getAttribute('href')
    assert(/^https?:/.test(to ?? ''), `a link to ${to}`)
  }
  assert.equal(await page.evaluate(() => window.pwned), undefined)
  const inside = await chat.log.evaluate((log) =>
    [...log.querySelectorAll('script, iframe, style, base, form, object, embed, img[src^="http"]')].map(
      (e) => e.outerHTML,
    ),
  )
  assert.deepEqual(inside, [])
  const raw = await chat.log.evaluate((log) => /[\u202a-\u202e\u2066-\u2069\u001b]/.test(log.innerText))
  assert.equal(raw, false, 'characters that deceive are shown as they are')
  const title = await page.title()
  assert.deepEqual(asked, [], `somebody was told: ${asked} ${title}`)
})

test('a whole conversation without a mouse', async (t) => {
  const model = await Model.start(t)
  model
    .script('make a file', { toolCalls: [call('shell', { command: ['touch', 'made.txt'] })] }, 'It is there.')
    .script('thank you', 'You are welcome.')
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  await until('the field has the focus', () => page.evaluate(() => document.activeElement?.tagName === 'TEXTAREA'))
  await page.keyboard.type('Please make a file')
  await page.keyboard.press('Enter')
  await chat.card.waitFor()
  const allow = chat.card.getByRole('button', { name: 'Allow once' })
  // A key right after a card appears does not answer it.
  await until('it can be answered', async () => (await allow.getAttribute('aria-disabled')) === null)
  await tabTo(page, allow)
  await page.keyboard.press('Enter')
  await chat.ended('It is there.')
  await tabTo(page, chat.field)
  await page.keyboard.type('thank you')
  await page.keyboard.press('Enter')
  await chat.ended('You are welcome.')
})

// tabTo reaches an element with Tab alone, and checks that focus is not trapped
// on the way.
async function tabTo(page, target) {
  for (let i = 0; i < 100; i++) {
    if (await target.evaluate((e) => e === document.activeElement)) return
    await page.keyboard.press('Tab')
  }
  assert.fail('it is not reached with Tab')
}
