import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Chat } from './lib/chat.mjs'
import { call, Model, Server, test, until, Visitor } from './lib/index.mjs'
import { Rail } from './lib/shell.mjs'

const story =
  'Once upon a time there was a log. Everything that was shown had been written to it first. ' +
  'Nobody was ever surprised again. The end.'

async function open(t, { files, git, prepare = () => {}, ...rest } = {}) {
  const model = await Model.start(t)
  prepare(model)
  const server = await Server.start(t, { env: model.env, files, git })
  const visitor = await Visitor.come(t, server, rest)
  const page = await visitor.tab('/')
  return { model, server, visitor, page, chat: new Chat(page), rail: new Rail(page) }
}

test('the first run greets, and the first message is answered', async (t) => {
  const server = await Server.start(t)
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/')
  await page.getByRole('heading', { name: /^Hello/ }).waitFor()
  await page.getByText('demo model').first().waitFor()
  await page.getByText('ANTHROPIC_API_KEY').waitFor()
  assert.equal(await page.getByRole('list', { name: 'Things to try' }).getByRole('listitem').count(), 4)
  const chat = new Chat(page)
  await chat.say('repeat Good morning')
  await page.waitForURL('**/chat/*')
  await chat.ended('Good morning')
  await new Rail(page).conversations.getByRole('link').first().waitFor()
})

test('each suggestion of the first page does what it says', async (t) => {
  const server = await Server.start(t)
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  const things = page.getByRole('list', { name: 'Things to try' })

  await things.getByRole('button', { name: /stream/ }).click()
  await page.waitForURL('**/chat/*')
  await chat.answers.first().waitFor()
  await chat.idle()

  await page.goto('/')
  await things.getByRole('button', { name: /tool/ }).click()
  await chat.card.getByRole('button', { name: 'Allow once' }).click()
  await chat.idle()
  assert(existsSync(join(server.workspace, 'hello.txt')))

  await page.goto('/')
  await things.getByRole('button', { name: /plan/i }).click()
  await chat.log.getByRole('region', { name: 'Plan' }).first().waitFor()
  await chat.log.getByRole('list', { name: 'Sub-agents' }).first().waitFor()
})

test('an answer streams in', async (t) => {
  const { model, chat } = await open(t, { prepare: (m) => m.script('a story', story) })
  const hold = model.hold('a story')
  await chat.say('Tell me a story')
  await hold.reached
  await chat.answers.getByText('Once upon').waitFor()
  assert.equal(await chat.answers.getByText('The end.').count(), 0, 'it is still being said')
  await chat.stop.waitFor()
  hold.release()
  await chat.ended('The end.')
})

test('a run is stopped, by button and by Escape twice', async (t) => {
  const { model, page, chat } = await open(t, {
    prepare: (m) => m.script('a story', story).script('anything else', 'Nothing else.').script('another tale', story),
  })
  await page.clock.install()
  await page.reload()
  const hold = model.hold('a story')
  await chat.say('Tell me a story')
  await hold.reached
  await chat.answers.getByText('Once upon').waitFor()
  await chat.stop.click()
  await chat.answers.getByText('stopped').waitFor()
  await chat.idle()
  hold.release()
  await chat.say('Do you have anything else?')
  await chat.ended('Nothing else.')
  assert.equal(await chat.answers.getByText('The end.').count(), 0, 'something came after the stop')

  const again = model.hold('another tale')
  await chat.say('Then another tale')
  await again.reached
  await chat.stop.waitFor()
  // The second press comes in time, however slow the machine is.
  await page.clock.pauseAt(Date.now() + 10_000)
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  await page.clock.resume()
  await until('two were stopped', async () => (await chat.answers.getByText('stopped').count()) === 2)
  again.release()
})

const touch = { content: 'I will make it.', toolCalls: [call('shell', { command: ['touch', 'made.txt'] })] }

test('a tool asks, is allowed, and runs', async (t) => {
  const { server, chat, rail, page } = await open(t, { prepare: (m) => m.script('make a file', touch, 'It is there.') })
  await chat.say('Please make a file')
  await chat.card.getByText('touch made.txt').waitFor()
  assert(!existsSync(join(server.workspace, 'made.txt')), 'it ran unasked')
  await rail.pages.getByRole('link', { name: /Approvals 1/ }).waitFor()
  await until('the tab tells', async () => (await page.title()).startsWith('(1) '))
  await chat.card.getByRole('button', { name: 'Allow once' }).click()
  await chat.ended('It is there.')
  assert(existsSync(join(server.workspace, 'made.txt')))
  await chat.card.waitFor({ state: 'detached' })
  await rail.pages.getByRole('link', { name: /Approvals \d/ }).waitFor({ state: 'detached' })
})

test('a tool is denied, and the agent is told why', async (t) => {
  const { model, server, chat } = await open(t, { prepare: (m) => m.script('make a file', touch, 'Then I will not.') })
  await chat.say('Please make a file')
  await chat.card.getByRole('button', { name: 'Add a note' }).click()
  await chat.card.getByLabel('Note for the agent').fill('Not in this folder.')
  await chat.card.getByRole('button', { name: 'Deny', exact: true }).click()
  await chat.ended('Then I will not.')
  assert(!existsSync(join(server.workspace, 'made.txt')))
  assert(model.asked.at(-1).includes('Not in this folder.'), 'the model was not told')
})

test('similar commands are allowed, listed and revoked', async (t) => {
  const makes = (name) => ({ toolCalls: [call('shell', { command: ['touch', name] })] })
  const { server, chat, page } = await open(t, {
    prepare: (m) => {
      for (const name of ['one.txt', 'two.txt', 'three.txt']) m.script(`make ${name}`, makes(name), `Made ${name}.`)
    },
  })
  await chat.say('Please make one.txt')
  await chat.card.getByText('touch with other arguments, to make empty files in the workspace').waitFor()
  await chat.card.getByRole('button', { name: 'Always similar' }).click()
  await chat.ended('Made one.txt.')
  await chat.say('Please make two.txt')
  await chat.ended('Made two.txt.')
  assert(existsSync(join(server.workspace, 'two.txt')))

  const grants = page.getByRole('list', { name: 'Grants' })
  await grants.getByRole('button', { name: /^Revoke: touch with other arguments/ }).click()
  await page.getByText('Nothing is allowed without asking.').waitFor()
  await chat.say('Please make three.txt')
  await chat.card.getByText('touch three.txt').waitFor()
  assert(!existsSync(join(server.workspace, 'three.txt')), 'a revoked grant still covers')
})

test('an agent asks, and is answered', async (t) => {
  const question = {
    question: 'Which colour?',
    header: 'Colour',
    options: [{ label: 'Blue' }, { label: 'Green', description: 'as grass' }],
    multi_select: false,
  }
  const { model, chat } = await open(t, {
    prepare: (m) => m.script('paint it', { toolCalls: [call('ask_user', { questions: [question] })] }, 'Painted.'),
  })
  await chat.say('Please paint it')
  await chat.card.getByText('Which colour?').waitFor()
  await chat.card.getByRole('radio', { name: 'Green' }).check()
  await chat.card.getByRole('button', { name: 'Answer' }).click()
  await chat.ended('Painted.')
  assert(model.asked.at(-1).includes('Green'))
})

const items = [
  { title: 'Look around', status: 'done' },
  { title: 'Fix it', status: 'in_progress' },
  { title: 'Test it', status: 'pending' },
]

test('a plan is shown, and one that waits is approved', async (t) => {
  const { chat } = await open(t, {
    prepare: (m) =>
      m
        .script('plan as you go', { toolCalls: [call('update_plan', { summary: 'Three steps', items })] }, 'On my way.')
        .script(
          'plan first',
          {
            toolCalls: [
              call('update_plan', {
                summary: 'Only a proposal',
                items: items.map((i) => ({ ...i, status: 'pending' })),
              }),
            ],
          },
          'What do you think?',
        )
        .script('Plan approved', 'Carried out.'),
  })
  await chat.say('Please plan as you go')
  const plan = chat.log.getByRole('region', { name: 'Plan' })
  await plan.getByText('Three steps').waitFor()
  await plan.getByText('Fix it').waitFor()
  await chat.ended('On my way.')
  await chat.say('/plan please plan first')
  await plan.getByText('Only a proposal').waitFor()
  await plan.getByRole('button', { name: 'Approve and carry out' }).click()
  await chat.ended('Carried out.')
})

const team = {
  'agents/a-lead.md': '---\nname: lead\ndescription: leads\ndelegates: [helper]\n---\nLead.\n',
  'agents/b-helper.md': '---\nname: helper\ndescription: helps\n---\nHelp.\n',
}

test('sub-agents are shown as a tree, with their cards', async (t) => {
  const { server, chat } = await open(t, {
    files: team,
    prepare: (m) =>
      m
        .script(
          'get help',
          { content: 'I ask helper.', toolCalls: [call('delegate', { agent_id: 'helper', task: 'Make made.txt' })] },
          'Helper did it.',
        )
        .script('Make made.txt', touch, 'Made by helper.'),
  })
  await chat.say('Please get help')
  const tree = chat.log.getByRole('list', { name: 'Sub-agents' })
  await tree.getByText('helper').first().waitFor()
  await chat.log.getByRole('article', { name: 'helper wants to run a command' }).getByText('sub-agent').waitFor()
  await chat.card.getByRole('button', { name: 'Allow once' }).click()
  await chat.ended('Helper did it.')
  assert(existsSync(join(server.workspace, 'made.txt')))
  await tree.getByText('completed').waitFor()
})

test('changes of files are reported, side by side', async (t) => {
  const { chat, page, server } = await open(t, {
    files: { 'notes.txt': 'one\ntwo\nthree\n' },
    git: true,
    prepare: (m) =>
      m.script(
        'change a line',
        { toolCalls: [call('edit_file', { path: 'notes.txt', old_text: 'two', new_text: 'TWO' })] },
        'Changed.',
      ),
  })
  await chat.say('Please change a line')
  await chat.card.getByRole('button', { name: 'Allow once' }).click()
  await chat.ended('Changed.')
  const report = chat.log.getByRole('region', { name: 'Changed files' })
  await report.getByText('notes.txt').first().waitFor()
  await report.getByText('TWO').first().waitFor()
  assert.equal(readFileSync(join(server.workspace, 'notes.txt'), 'utf8'), 'one\nTWO\nthree\n')
  await page.reload()
  await report.getByText('TWO').first().waitFor()
})

test('a message during a run waits, is withdrawn, or steers the run', async (t) => {
  const { model, chat } = await open(t, {
    prepare: (m) =>
      m
        .script('a story', { content: story, toolCalls: [call('list_files', {})] }, 'unused')
        .script('also this', 'I read that too.'),
  })
  const hold = model.hold('a story')
  await chat.say('Tell me a story')
  await hold.reached
  await chat.answers.getByText('Once upon').waitFor()
  await chat.say('and not this')
  await chat.queued.getByText('and not this').waitFor()
  await chat.say('and also this')
  await chat.queued.getByText('and also this').waitFor()
  await chat.queued.getByRole('button', { name: 'Take back: and not this' }).click()
  await chat.queued.getByText('and not this').waitFor({ state: 'detached' })
  hold.release()
  await chat.ended('I read that too.')
  await chat.queued.waitFor({ state: 'detached' })
  assert(!model.asked.some((body) => body.includes('and not this')), 'it was read all the same')
})

test('a draft is still there after a reload', async (t) => {
  const { chat, page } = await open(t)
  await chat.field.fill('Half a thou')
  await page.reload()
  await until('the draft is there', async () => (await chat.field.inputValue()) === 'Half a thou')
})

test('a new card is scrolled into view for a reader at the end', async (t) => {
  const long = Array.from({ length: 40 }, (_, i) => `Line ${i} of a long answer.`).join('\n\n')
  const { chat } = await open(t, {
    prepare: (m) => m.script('make a file', { ...touch, content: long }, 'It is there.'),
  })
  await chat.say('Please make a file')
  const allow = chat.card.getByRole('button', { name: 'Allow once' })
  await allow.waitFor()
  await until('the card is in view', async () => {
    const box = await allow.boundingBox()
    const field = await chat.field.boundingBox()
    return box !== null && field !== null && box.y > 0 && box.y + box.height <= field.y
  })
})

test('a conversation on a phone', async (t) => {
  const { chat, page, server } = await open(t, {
    width: 390,
    height: 844,
    prepare: (m) => m.script('make a file', { ...touch, content: `\`${'x'.repeat(300)}\`` }, 'It is there.'),
  })
  await chat.say('Please make a file')
  await chat.card.getByRole('button', { name: 'Allow once' }).click()
  await chat.ended('It is there.')
  assert(existsSync(join(server.workspace, 'made.txt')))
  assert.equal(
    await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth),
    0,
    'it is wider than a phone',
  )
  await page.getByRole('button', { name: 'Menu' }).click()
  await page.getByRole('dialog', { name: 'Menu' }).getByRole('link', { name: 'Please make a file' }).waitFor()
})
