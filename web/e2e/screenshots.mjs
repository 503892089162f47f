// Takes the pictures of the README and of docs/, from a server of its own.
//   node screenshots.mjs FOLDER
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DebugConsole } from './lib/agent.mjs'
import { closeBrowser, Visitor } from './lib/browser.mjs'
import { Chat } from './lib/chat.mjs'
import { call, Model } from './lib/model.mjs'
import { startPostgres } from './lib/postgres.mjs'
import { jwt, Server, token, until } from './lib/server.mjs'

const folder = process.argv[2]
if (folder === undefined) throw new Error('say where to put them')
mkdirSync(folder, { recursive: true })

const endings = []
const t = { after: (undo) => endings.push(undo) }

const cache = `package cache

import "sync"

type Cache struct {
	mu    sync.Mutex
	items map[string]string
}

func (c *Cache) Get(key string) string {
	return c.items[key]
}
`

const answer = `I found it: \`Get\` reads the map **without holding the lock**, so a \`Set\`
at the same time is a data race.

\`\`\`go
func (c *Cache) Get(key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.items[key]
}
\`\`\`

I propose this change, and run the tests with \`-race\` afterwards.`

const plan = (first, second, third) =>
  call('update_plan', {
    summary: 'Make the test reliable',
    items: [
      { title: 'Reproduce it', status: first },
      { title: 'Fix the race', status: second },
      { title: 'Run the tests again', status: third },
    ],
  })

async function picture(page, name) {
  await page.evaluate(() => document.fonts.ready)
  const resting = page.locator('button[aria-disabled="true"]')
  await until('its buttons can be pressed', async () => (await resting.count()) === 0)
  await page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled', caret: 'hide' })
}

// both takes a light and a dark picture of a view. ready waits until the view
// is visible.
async function both(tabs, name, path, ready) {
  for (const [page, ending] of [
    [tabs.light, ''],
    [tabs.dark, '-dark'],
  ]) {
    await page.goto(path)
    await ready(page)
    await until('it has loaded', async () => (await page.getByRole('main').getByText(/^Loading/).count()) === 0)
    await picture(page, name + ending)
  }
}

// tabsOf opens a server in a light and a dark browser.
async function tabsOf(server) {
  const open = async (dark) => (await Visitor.come(t, server, { dark, tolerate: [/40[14]/] })).tab('/')
  return { light: await open(false), dark: await open(true) }
}

async function fix(page, chat) {
  await chat.say('Fix the flaky test')
  await chat.card.waitFor()
}

try {
  // Without a model: the first view of make run.
  const fresh = await Server.start(t, { env: { AUTONOMY_ENABLED: 'true' } })
  const newcomers = await tabsOf(fresh)
  await both(newcomers, 'first-run', '/', (tab) => tab.getByRole('list', { name: 'Things to try' }).waitFor())
  await both(newcomers, 'not-found', '/nowhere', (tab) =>
    tab.getByRole('heading', { name: 'Page not found' }).waitFor(),
  )

  const closed = await Server.start(t, { env: jwt })
  const doors = await tabsOf(closed)
  await both(doors, 'sign-in', '/', (tab) => tab.getByLabel('Access token').waitFor())
  for (const user of ['bob', 'carol'])
    await closed.ask('POST', '/api/v1/sessions', { token: token(user, 'standard_user'), body: { title: 'Notes' } })
  for (const door of Object.values(doors)) {
    await door.getByLabel('Access token').fill(token('ann', 'org_admin'))
    await door.getByRole('button', { name: 'Sign in with this token' }).click()
    await door.getByText('ann · org_admin').waitFor()
  }
  await both(doors, 'people', '/settings?#people', (tab) => tab.getByRole('list', { name: 'People' }).waitFor())

  const model = await Model.start(t)
  model.script(
    'Fix the flaky test',
    {
      content: 'I look at the cache first.',
      toolCalls: [
        plan('in_progress', 'pending', 'pending'),
        call('read_file', { path: 'cache.go' }),
        call('search_files', { pattern: 'items' }),
      ],
    },
    {
      content: answer,
      toolCalls: [
        plan('done', 'in_progress', 'pending'),
        call('edit_file', {
          path: 'cache.go',
          old_text: '\treturn c.items[key]',
          new_text: '\tc.mu.Lock()\n\tdefer c.mu.Unlock()\n\treturn c.items[key]',
        }),
      ],
    },
    {
      content: 'Now the tests.',
      toolCalls: [plan('done', 'done', 'in_progress'), call('shell', { command: ['go', 'test', '-race', './...'] })],
    },
    {
      content: 'The race is gone, and the test passes a hundred times in a row.',
      toolCalls: [plan('done', 'done', 'done')],
    },
    'Done: the cache takes its lock when it is read, too.',
  )
  model.script(
    'How do you keep',
    'The server appends every event to the log before it sends it. A connection is a cursor into that ' +
      'log. After a lost connection or a restart, the client reads on from its cursor. So all clients ' +
      'show the same conversation.',
  )
  model.script(
    'What can you do',
    { toolCalls: [call('list_files', {})] },
    'I can read this project, run its tests and propose changes. I ask you before I change a file.',
  )
  model.script(
    'Clean up',
    { content: 'There is an old build folder.', toolCalls: [call('shell', { command: ['rm', '-rf', 'build'] })] },
    'Gone.',
  )
  model.script(
    'Plan the release',
    {
      toolCalls: [
        call('update_plan', {
          summary: 'Release 1.4 with the fixed cache',
          items: [
            { title: 'Write the changelog', description: 'from the commits since 1.3', status: 'pending' },
            { title: 'Run all tests with -race', status: 'pending' },
            { title: 'Tag the release', status: 'pending' },
          ],
        }),
      ],
    },
    'This is how I would do it.',
  )
  const files = {
    'cache.go': cache,
    'cache_test.go': 'package cache\n',
    'build/old.o': '',
    'skills/release-notes/SKILL.md':
      '---\nname: release-notes\ndescription: writes release notes from the commits since a tag\n---\n' +
      'List the commits.\n',
    'agents/coder.md':
      '---\nname: coder\ndescription: writes and fixes code\n---\n' +
      'You fix code in this project. Explain what you found before you change it.\n',
    'agents/release-manager.md':
      '---\nname: release-manager\ndescription: plans releases and writes changelogs\n---\nYou plan releases.\n',
    'agents/reviewer.md':
      '---\nname: reviewer\ndescription: reads changes before people do\n---\nYou review changes.\n',
  }
  const server = await Server.start(t, { env: model.env, files, git: true })
  for (const title of ['Release notes', 'Why is CI slow?'])
    await server.ask('POST', '/api/v1/sessions', { body: { title } })
  const visitor = await Visitor.come(t, server, { width: 1280, height: 800, reducedMotion: 'reduce' })
  const page = await visitor.tab('/')
  const chat = new Chat(page)

  const hold = model.hold('How do you keep', 16)
  await chat.say('How do you keep every client in step?')
  await hold.reached
  await chat.answers.getByText('appends').waitFor()
  await picture(page, 'streaming')
  hold.release()
  await chat.idle()

  await page.goto('/')
  await fix(page, chat)
  await chat.answers.getByText('I found it').waitFor()
  await until('the code is highlighted', async () => (await chat.log.locator('pre span').count()) > 0)
  await chat.card.getByRole('button', { name: 'Allow once' }).scrollIntoViewIfNeeded()
  await picture(page, 'approval')
  const dark = await Visitor.come(t, server, { width: 1280, height: 800, dark: true })
  const night = new Chat(await dark.tab(page.url()))
  await night.card.waitFor()
  await until('the code is highlighted', async () => (await night.log.locator('pre span').count()) > 0)
  await night.card.getByRole('button', { name: 'Allow once' }).scrollIntoViewIfNeeded()
  await picture(night.page, 'dark')
  const phone = await Visitor.come(t, server, { width: 390, height: 844 })
  const small = new Chat(await phone.tab(page.url()))
  await small.card.waitFor()
  await until('the code is highlighted', async () => (await small.log.locator('pre span').count()) > 0)
  await small.card.getByRole('button', { name: 'Allow once' }).scrollIntoViewIfNeeded()
  await picture(small.page, 'phone')

  await server.ask('POST', '/api/chat', { body: { message: 'Clean up the old build' } })
  await server.ask('POST', '/api/chat', { body: { message: 'Plan the release', mode: 'plan' } })
  await until('the plan waits', async () => (await server.ask('GET', '/api/v1/plans')).plans.length === 1)
  const tabs = { light: page, dark: night.page }
  await both(tabs, 'approvals', '/approvals', async (tab) => {
    await until('two wait', async () => (await tab.getByRole('article', { name: /wants to/ }).count()) === 2)
    await tab.getByRole('region', { name: 'Plan' }).waitFor()
  })

  await both(tabs, 'debug-console', '/agents/coder', async (tab) => {
    const debug = new DebugConsole(tab)
    await debug.connected()
    await debug.say('What can you do here?')
    await debug.log.getByText('I can read this project').waitFor()
  })

  const { approvals } = await server.ask('GET', '/api/v1/approvals')
  const edit = approvals.find((a) => a.tool === 'edit_file')
  await server.ask('POST', `/api/v1/approvals/${edit.id}`, { body: { decision: 'allow' } })
  const next = await until('the tests want to run', async () =>
    (await server.ask('GET', '/api/v1/approvals')).approvals.find((a) => a.session === edit.session),
  )
  await server.ask('POST', `/api/v1/approvals/${next.id}`, { body: { decision: 'always' } })
  await until(
    'the run has ended',
    async () => (await server.ask('GET', `/api/v1/runs?session=${edit.session}`)).runs[0].outcome,
  )
  const { runs } = await server.ask('GET', `/api/v1/runs?session=${edit.session}`)
  await both(tabs, 'run', `/runs/${runs[0].id}`, (tab) => tab.getByRole('heading', { name: 'Model calls' }).waitFor())
  await both(tabs, 'prompt', `/runs/${runs[0].id}`, async (tab) => {
    const calls = tab.getByRole('region', { name: 'Model calls' })
    await calls.getByRole('button', { name: /^Turn 2/ }).click()
    await calls.getByText('Everything here is what was sent').waitFor()
    await calls.scrollIntoViewIfNeeded()
    await calls.evaluate((section) => section.scrollIntoView())
  })
  await both(tabs, 'replay', `/runs/${runs[0].id}`, async (tab) => {
    await tab.getByRole('button', { name: 'Step through the session' }).click()
    await tab.getByRole('slider', { name: 'Event' }).waitFor()
    await tab.getByRole('region', { name: 'Replay' }).evaluate((section) => section.scrollIntoView())
  })
  const others = (await server.ask('GET', '/api/v1/runs')).runs.filter((run) => run.id !== runs[0].id && run.outcome)
  await both(tabs, 'compare', `/runs/compare?a=${runs[0].id}&b=${others[0].id}`, (tab) =>
    tab.getByRole('heading', { name: 'Steps' }).waitFor(),
  )
  await both(tabs, 'search', '/runs', async (tab) => {
    await tab.locator('[data-agent-glyph]').first().waitFor()
    await tab.keyboard.press('Control+k')
    await tab.getByRole('dialog', { name: 'Command palette' }).waitFor()
    await tab.keyboard.type('cache')
    await tab.getByRole('option').locator('mark').first().waitFor()
  })
  const heading = (name) => (tab) => tab.getByRole('heading', { name, level: 1 }).first().waitFor()
  await both(tabs, 'agents', '/agents', (tab) => tab.locator('[data-agent-glyph]').first().waitFor())
  await both(tabs, 'runs', '/runs', (tab) => tab.locator('[data-agent-glyph]').first().waitFor())
  await both(tabs, 'files', '/files?path=cache.go', async (tab) => {
    await tab.getByRole('button', { name: 'Show the last change' }).click()
    await tab.getByRole('region', { name: /Changes of cache.go/ }).locator('code span').first().waitFor()
  })
  await both(tabs, 'settings', '/settings', heading('Settings'))
  await both(tabs, 'rules', '/settings?#grants', heading('Settings'))
  await both(tabs, 'webhooks', '/settings?#webhooks', heading('Settings'))
  await both(tabs, 'autonomy', '/settings?#autonomy', heading('Settings'))
  await both(tabs, 'audit', '/settings?#audit', (tab) => tab.getByRole('list', { name: 'Audit records' }).waitFor())
  await both(tabs, 'general', '/settings?#general', heading('Settings'))
  await both(tabs, 'skills', '/settings?#skills', (tab) => tab.getByText('release-notes').first().waitFor())
  const database = await startPostgres(t)
  if (database === undefined) throw new Error('the picture of the nodes needs PostgreSQL')
  const env = { PARLEY_DATABASE_URL: database, PARLEY_SERVER_KEY: 'k'.repeat(32) }
  const one = await Server.start(t, { env })
  await Server.start(t, { env })
  await both(await tabsOf(one), 'nodes', '/settings?#nodes', (tab) =>
    tab.getByRole('list', { name: 'Nodes' }).getByRole('listitem').nth(1).waitFor(),
  )
  // API keys are entered on a server without any.
  await both(newcomers, 'models', '/settings?#models', (tab) => tab.getByRole('region', { name: 'Google' }).waitFor())
  await both(newcomers, 'servers', '/settings?#tools', async (tab) => {
    await tab.getByRole('button', { name: 'Add a tool server' }).click()
    await tab.getByLabel('Name of the server').fill('notes')
    await tab.getByLabel('Command').fill('/opt/tools/mcp-server-notes --stdio')
  })
  await small.page.goto('/settings')
  await heading('Settings')(small.page)
  await picture(small.page, 'phone-settings')
} finally {
  for (const undo of endings) await undo()
  await closeBrowser()
}
