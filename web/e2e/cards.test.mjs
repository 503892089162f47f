// One card, one question form and one dialog, wherever a person is asked.
import assert from 'node:assert/strict'
import { DebugConsole } from './lib/agent.mjs'
import { Chat } from './lib/chat.mjs'
import { call, Model, Server, test, until, Visitor } from './lib/index.mjs'
import { Rail } from './lib/shell.mjs'

const agent = 'helpful-assistant'

async function open(t, prepare) {
  const model = await Model.start(t)
  prepare(model)
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server)
  return { model, server, visitor, page: await visitor.tab('/') }
}

// shown returns what a card says and offers, without times and links of its page.
async function shown(card) {
  await card.getByRole('button', { name: 'Deny and stop' }).waitFor()
  // Until the page knows that there is no such file, it warns that one may be replaced.
  await card.getByText('This is a new file. Its full contents:').waitFor()
  return {
    buttons: await card.getByRole('button', { name: /^(Allow|Always|Deny|Explain)/ }).allInnerTexts(),
    warnings: await card.getByRole('list', { name: 'Warnings' }).getByRole('listitem').allInnerTexts(),
    diff: await card.getByRole('region', { name: 'Proposed changes' }).getByRole('img', { name: 'added' }).count(),
    isNew: await card.getByText('This is a new file. Its full contents:').count(),
  }
}

test('an approval is the same card in the chat, the inbox, the page of the run and the debug console', async (t) => {
  const content = 'one\nsafe \u202egnp.exe\n'
  const { server, visitor, page } = await open(t, (m) =>
    m.script('write it', { toolCalls: [call('write_file', { path: 'new.txt', content })] }, 'Written.'),
  )
  const chat = new Chat(page)
  await chat.say('Please write it')
  const whole = await shown(chat.card)
  assert.deepEqual(whole, {
    buttons: ['Allow once', 'Always', 'Deny\n⌫', 'Deny and stop', 'Explain'],
    warnings: ['It contains characters that change the direction of text.'],
    diff: 2,
    isNew: 1,
  })
  const { runs } = await server.ask('GET', '/api/v1/runs?open=1')
  for (const path of ['/approvals', `/runs/${runs[0].id}`]) {
    const tab = await visitor.tab(path)
    assert.deepEqual(await shown(tab.getByRole('article', { name: `${agent} wants to write new.txt` })), whole, path)
    await tab.close()
  }
  const debug = new DebugConsole(await visitor.tab(`/agents/${agent}`))
  await debug.connected()
  await debug.say('Please write it')
  const there = debug.panel.getByRole('article', { name: /wants to write/ })
  assert.deepEqual(await shown(there), whole, 'the debug console')
})

test('a question is the same form in the chat and the inbox, and deleting asks the same everywhere', async (t) => {
  const options = [{ label: 'Blue' }, { label: 'Red' }]
  const question = { question: 'Which colour?', header: 'Colour', options, multi_select: false }
  const { visitor, page } = await open(t, (m) =>
    m.script('paint it', { toolCalls: [call('ask_user', { questions: [question] })] }, 'Painted.'),
  )
  const chat = new Chat(page)
  await chat.say('Please paint it')
  const inbox = await visitor.tab('/approvals')
  const forms = []
  for (const place of [chat.log, inbox]) {
    const card = place.getByRole('article', { name: 'helpful-assistant asks a question' })
    await card.getByRole('radio', { name: 'Blue' }).waitFor()
    await card.getByRole('textbox', { name: 'Another answer to: Which colour?' }).waitFor()
    forms.push(await card.getByRole('group').ariaSnapshot())
  }
  assert.equal(forms[0], forms[1])
  await inbox.getByRole('radio', { name: 'Red' }).check()
  await inbox.getByRole('button', { name: 'Answer', exact: true }).click()
  await chat.ended('Painted.')

  // The focus is on the answer that keeps the conversation, not on the cross.
  const rail = new Rail(page)
  const dialog = page.getByRole('alertdialog', { name: 'Delete this conversation?' })
  const asked = []
  for (const act of [
    () => rail.act('Please paint it', 'Delete'),
    async () => {
      await page.getByRole('button', { name: 'Conversation actions' }).click()
      await page.getByRole('menuitem', { name: /^Delete the conversation/ }).click()
    },
  ]) {
    await act()
    const focused = dialog.locator('button:focus')
    await until('the safe answer has the focus', async () => (await focused.textContent()) === 'Keep it')
    asked.push(await dialog.ariaSnapshot())
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
  }
  assert.equal(asked[0], asked[1])
})

test('the inbox asks the server once for each kind of request', async (t) => {
  const server = await Server.start(t)
  const visitor = await Visitor.come(t, server)
  const page = await visitor.context.newPage()
  const asked = []
  page.on('request', (request) => {
    const { pathname } = new URL(request.url())
    if (/^\/api\/v1\/(approvals|questions|calls|plans)$/.test(pathname)) asked.push(pathname)
  })
  await page.goto('/approvals')
  await page.getByText('Nothing is waiting for you').waitFor()
  await page.getByText('online', { exact: true }).waitFor()
  await page.waitForLoadState('networkidle')
  assert.deepEqual(asked.toSorted(), ['approvals', 'calls', 'plans', 'questions'].map((name) => `/api/v1/${name}`))
})
