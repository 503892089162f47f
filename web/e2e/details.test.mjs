// What an answer and the panel beside it say of a run: its plan, its tools, its times, its cost, and its end.
import assert from 'node:assert/strict'
import { Chat } from './lib/chat.mjs'
import { call, Model, Server, test, until, Visitor } from './lib/index.mjs'

async function open(t, prepare, files = {}) {
  const model = await Model.start(t)
  prepare(model)
  const server = await Server.start(t, { env: model.env, files, git: Object.keys(files).length > 0 })
  const visitor = await Visitor.come(t, server)
  await visitor.context.grantPermissions(['clipboard-read', 'clipboard-write'])
  const page = await visitor.tab('/')
  const details = page.getByRole('complementary', { name: 'Run details' })
  return { model, server, page, chat: new Chat(page), details }
}

test('a plan says what was done, and what the agent did not mark', async (t) => {
  const items = [
    { title: 'Look around', status: 'done' },
    { title: 'Fix it', status: 'in_progress' },
    { title: 'Test it', status: 'pending' },
  ]
  const { chat, details } = await open(t, (m) =>
    m.script('plan it', { toolCalls: [call('update_plan', { summary: 'Three steps', items })] }, 'On my way.'),
  )
  await chat.say('Please plan it')
  await chat.ended('On my way.')
  const plan = chat.log.getByRole('region', { name: 'Plan' })
  await plan.getByText('1 done, 2 not marked').waitFor()
  for (const place of [plan, details]) {
    const rows = place.getByRole('listitem').filter({ hasText: /Look around|Fix it|Test it/ })
    const marks = await rows.allTextContents()
    assert.deepEqual(
      marks.map((text) => [/^.(not marked as done|done)/.exec(text)?.[1], text.replace(/^.(not marked as )?done/, '')]),
      [
        ['done', 'Look around'],
        ['not marked as done', 'Fix it'],
        ['not marked as done', 'Test it'],
      ],
    )
  }
  const lines = (log) => [...log.querySelectorAll('*')].map((e) => getComputedStyle(e).textDecorationLine)
  assert.equal((await chat.log.evaluate(lines)).includes('line-through'), false)
})

test('the details keep the tools of a run after a message has steered it', async (t) => {
  const looks = { content: 'I look at what is here, with care.', toolCalls: [call('list_files', {})] }
  const reads = { toolCalls: [call('read_file', { path: 'notes.md' })] }
  const { model, chat, details } = await open(
    t,
    (m) => m.script('look around', looks, 'unused').script('also this', reads, 'I read that too.'),
    { 'notes.md': '# Notes\n' },
  )
  const hold = model.hold('look around')
  await chat.say('Please look around')
  await hold.reached
  await chat.answers.getByText('I look').waitFor()
  await chat.say('and also this')
  await chat.queued.getByText('and also this').waitFor()
  hold.release()
  await chat.ended('I read that too.')
  const turns = details.getByRole('listitem').filter({ hasText: /^turn \d/ })
  await until('three turns', async () => (await turns.count()) === 3)
  await turns.nth(0).getByText('list_files').waitFor()
  await turns.nth(1).getByText('read_file').waitFor()
})

const patch = `*** Begin Patch
*** Update File: notes.md
@@
-# Notes
+# Better notes
*** End Patch`

test('a finished patch is a diff, and a finished command is a command with all of its output', async (t) => {
  const turns = [call('apply_patch', { patch }), call('shell', { command: ['sh', '-c', 'touch made; seq 1 60'] })]
  const { page, chat } = await open(
    t,
    (m) => m.script('do both', ...turns.map((one) => ({ toolCalls: [one] })), 'Done.'),
    { 'notes.md': '# Notes\n' },
  )
  await chat.say('Please do both')
  for (const name of [/wants to change notes\.md/, /wants to run a command/])
    await chat.log.getByRole('article', { name }).getByRole('button', { name: 'Allow once' }).click()
  await chat.ended('Done.')
  for (const when of ['at once', 'after a reload']) {
    if (when !== 'at once') await page.reload()
    const fold = chat.answers.getByRole('button', { name: /Ran 2 tools/ })
    await fold.waitFor()
    if ((await fold.getAttribute('aria-expanded')) === 'false') await fold.click()
    const line = (name) => chat.answers.getByRole('button', { name })
    await line(/^done Change notes\.md/).click()
    const diff = chat.answers.getByRole('region', { name: 'Requested changes' })
    await diff.getByText('Better notes').waitFor()
    await line(/^done Run touch made; seq 1 60/).click()
    const seen = await chat.log.innerText()
    assert(!/\*\*\* Begin Patch|\\n|"command":/.test(seen), `${when}: escaped JSON is shown: ${seen}`)
    const output = chat.answers.locator('pre').filter({ hasText: /^1\n2\n/ }).filter({ hasText: /\n59\n60$/ })
    await output.first().waitFor()
  }
})

test('waiting for a person is no time of a tool, and runs that ended badly have no unknown price', async (t) => {
  const { model, page, chat, details } = await open(t, (m) =>
    m
      .script('make a file', { toolCalls: [call('shell', { command: ['touch', 'made'] })] }, 'Made.')
      .script('a story', 'Once upon a time there was a log. The end.'),
  )
  await chat.say('Please make a file')
  await chat.card.waitFor()
  const asked = Date.now()
  await details.getByText('waiting for you').waitFor()
  await until('some time has passed', () => Date.now() - asked > 3_000)
  await chat.card.getByRole('button', { name: 'Allow once' }).click()
  await chat.ended('Made.')
  const seconds = (text) => Number(/([\d.]+) s/.exec(text ?? '')?.[1] ?? 0)
  const waited = seconds(await details.getByText(/^and [\d.]+ s waiting for you$/).textContent())
  assert(waited > 2, `it waited for ${waited} s`)
  const tool = details.getByRole('listitem').filter({ hasText: /^✓done\s*shell/ })
  assert(seconds(await tool.textContent()) < waited, 'the time of the tool has the time of the person')
  const answer = chat.answers.last()
  await answer.hover()
  await answer.getByText(/ waiting for you$/).waitFor()
  await answer.getByText(/ tokens in context$/).waitFor()
  await details.getByText(/^\$0\.\d+$/).waitFor()

  const hold = model.hold('a story', 2)
  await chat.say('Tell me a story')
  await hold.reached
  await chat.stop.click()
  await chat.answers.getByText('stopped').waitFor()
  hold.release()
  await details.getByText('stopped').waitFor()
  assert.equal(await details.getByText('price unknown').count(), 0)
  model.refuse('a word', { status: 400, body: '{"error":{"message":"no such thing"}}' })
  await chat.say('Tell me a word')
  await details.getByText('failed').waitFor()
  assert.equal(await details.getByText('price unknown').count(), 0)
  for (const status of ['cancelled', 'failed']) {
    await page.goto('/runs')
    await page.getByRole('row').filter({ hasText: status }).getByRole('link').click()
    await page.getByRole('term').filter({ hasText: 'Cost' }).waitFor()
    await page.getByRole('region', { name: 'Model calls' }).waitFor()
    assert.equal(await page.getByText('price unknown').count(), 0, `the price of a ${status} run is unknown`)
  }
})

test('an answer that failed or was stopped says so to screen readers, and is tried again', async (t) => {
  const { model, page, chat } = await open(t, (m) =>
    m.script('a word', 'Parley.').script('a story', 'Once upon a time. The end.'),
  )
  const told = (text) => page.locator('[aria-live="polite"]').getByText(text).waitFor({ state: 'attached' })
  const again = chat.log.getByRole('button', { name: 'Try again' })
  model.refuse('a word', { status: 400, body: '{"error":{"message":"no such thing"}}' })
  await chat.say('Tell me a word')
  await again.waitFor()
  await told('helpful-assistant has failed.')
  await again.click()
  await chat.ended('Parley.')
  await told('helpful-assistant has finished.')
  assert.equal(await again.count(), 0)

  const hold = model.hold('a story', 2)
  await chat.say('Tell me a story')
  await hold.reached
  await told('helpful-assistant is working.')
  await chat.stop.click()
  await told('helpful-assistant was stopped.')
  hold.release()
  await again.click()
  await chat.ended('The end.')
})

test('a copied answer has its parts as paragraphs', async (t) => {
  const { page, chat } = await open(t, (m) =>
    m.script('look around', { content: 'I look.', toolCalls: [call('list_files', {})] }, 'There is **nothing**.'),
  )
  await chat.say('Please look around')
  await chat.ended('There is')
  await chat.answers.last().hover()
  await chat.answers.getByRole('button', { name: 'Copy answer' }).click()
  const copied = () => page.evaluate(() => navigator.clipboard.readText())
  await until('it is copied', async () => (await copied()) === 'I look.\n\nThere is **nothing**.')
})
