// The composer: it answers a question that waits, leaves its keys to the page after Escape, and fits narrow windows.
import assert from 'node:assert/strict'
import { Chat } from './lib/chat.mjs'
import { call, Model, Server, test, until, Visitor } from './lib/index.mjs'
import { Rail } from './lib/shell.mjs'

const story = 'Once upon a time there was a log, and everything was in it. The end.'

async function open(t, prepare = () => {}) {
  const model = await Model.start(t)
  prepare(model)
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/')
  return { model, server, page, chat: new Chat(page) }
}

const options = [{ label: 'Blue' }, { label: 'Red' }]
const asks = (...questions) => ({
  toolCalls: [
    call('ask_user', {
      questions: questions.map((question) => ({ question, header: 'Colour', options, multi_select: false })),
    }),
  ],
})

test('a text in the composer answers the question that waits', async (t) => {
  const { model, page, chat } = await open(t, (m) =>
    m
      .script('paint it', asks('Which colour?'), 'Painted.')
      .script('paint both', asks('Which wall?', 'Which door?'), 'Done.'),
  )
  await chat.say('Please paint it')
  await chat.card.getByText('Which colour?').waitFor()
  await page.getByPlaceholder('Answer the question…').waitFor()
  await chat.say('Purple, with dots')
  await chat.ended('Painted.')
  assert.match(model.asked.at(-1), /Purple, with dots/)
  const said = chat.log.getByRole('article', { name: 'You said' })
  assert.equal(await said.count(), 1, 'the answer is a message of its own')

  // A text cannot answer two questions. The page says where it goes.
  await chat.say('Please paint both')
  await chat.card.getByText('Which door?').waitFor()
  await page.getByText('Several questions wait for your answers above.').waitFor()
  await chat.say('And hurry')
  await chat.queued.getByText('And hurry').waitFor()
})

test('Escape leaves the composer, and letters are shortcuts only outside of it', async (t) => {
  const { model, server, page, chat } = await open(t)
  const rail = new Rail(page)
  await chat.field.click()
  await page.keyboard.type('ga jk? is a text')
  assert.equal(await chat.field.inputValue(), 'ga jk? is a text')
  assert.equal(await rail.help.count(), 0, 'a letter in the composer is a shortcut')
  await page.keyboard.press('Escape')
  await until('the composer is left', () => page.evaluate(() => document.activeElement?.tagName !== 'TEXTAREA'))
  await page.keyboard.press('?')
  await rail.help.waitFor()
  await page.keyboard.press('Escape')
  await rail.help.waitFor({ state: 'detached' })
  await page.keyboard.press('g')
  await page.keyboard.press('a')
  await page.waitForURL('**/agents')
  await page.goto('/')
  await until('the text is still there', async () => (await chat.field.inputValue()) === 'ga jk? is a text')
  assert.deepEqual((await server.ask('GET', '/api/v1/sessions')).sessions, [])
  assert.deepEqual(model.asked, [], 'something was sent')
})

// cut returns the buttons of the composer that are outside of it, or under something else.
const cut = (field) =>
  field.evaluate((area) => {
    const frame = area.parentElement.getBoundingClientRect()
    return [...area.parentElement.querySelectorAll('button')]
      .filter((button) => button.checkVisibility())
      .filter((button) => {
        const { left, right, top, bottom } = button.getBoundingClientRect()
        const hit = (x) => button.contains(document.elementFromPoint(x, (top + bottom) / 2))
        return left < frame.left || right > frame.right || !hit(left + 2) || !hit(right - 2)
      })
      .map((button) => button.textContent || button.getAttribute('aria-label'))
  })

test('the composer fits every window, beside the run details', async (t) => {
  const { model, page, chat } = await open(t, (m) => m.script('a story', story))
  const hold = model.hold('a story')
  await chat.say('Tell me a story')
  await hold.reached
  await chat.answers.getByText('Once upon').waitFor()
  await chat.field.fill('and be quick about it')
  const details = page.getByRole('complementary', { name: 'Run details' })
  for (const width of [1280, 1024, 900, 768, 640, 390]) {
    await page.setViewportSize({ width, height: 800 })
    const wanted = width >= 1024 // below that, the details cover the conversation until they are closed
    if ((await details.isVisible()) !== wanted)
      await page.getByRole('button', { name: /^(Hide|Show) run details$/, exact: true }).last().click()
    await until(`the details are ${wanted ? '' : 'not '}there`, async () => (await details.isVisible()) === wanted)
    for (const name of ['Steer', 'Stop']) await page.getByRole('button', { name, exact: true }).waitFor()
    await until(`nothing is cut off at ${width} px`, async () => (await cut(chat.field)).length === 0)
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    assert.equal(wide, 0, `the page is wider than ${width} px`)
  }
  hold.release()
})

test('the hint about Escape is no success, and goes when a second press would not stop the run', async (t) => {
  const { model, page, chat } = await open(t, (m) => m.script('a story', story))
  await page.clock.install()
  await page.reload()
  const hold = model.hold('a story')
  await chat.say('Tell me a story')
  await hold.reached
  await chat.stop.waitFor()
  // The hint stays until the test has looked at it, however slow the machine is.
  await page.clock.pauseAt(Date.now() + 10_000)
  const hint = page.getByText('Press Esc again to stop the run.')
  await page.keyboard.press('Escape')
  await hint.waitFor()
  assert.equal(await hint.locator('..').locator('svg').count(), 1, 'there is more than the cross that closes it')
  await until('the hint is gone', async () => {
    await page.clock.runFor(800)
    return (await hint.count()) === 0
  })
  await page.keyboard.press('Escape')
  await hint.waitFor() // the second press came too late, and only hints again
  await chat.stop.waitFor()
  await page.clock.resume()
  hold.release()
  await chat.ended('The end.')
  assert.equal(await chat.answers.getByText('stopped').count(), 0)
})
