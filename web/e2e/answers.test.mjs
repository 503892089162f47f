// Details that are shown with answers: the model, math and diagrams, and the place where an answer broke off.
import assert from 'node:assert/strict'
import { Chat } from './lib/chat.mjs'
import { Model, Server, test, until, Visitor } from './lib/index.mjs'

test('the model is chosen for one conversation, and the log says which one answered', async (t) => {
  const model = await Model.start(t)
  model.script('a word', 'Parley.')
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  const picker = page.getByRole('button', { name: /^Model: / })
  const header = page.getByRole('region', { name: 'Chat' }).locator('header').first()
  await page.getByRole('button', { name: 'Model: gpt-4.1. Choose another' }).click()
  await page.getByRole('menuitem', { name: /^gpt-4\.1 .*1M tokens · \$2 in, \$8 out per million/ }).waitFor()
  await page.getByRole('menuitem', { name: 'Another model…' }).click()
  await page.getByLabel('Name of the model').fill('gpt-4o-mini')
  await page.getByRole('button', { name: 'Use this model' }).click()
  const asked = () => model.asked.filter((body) => body.includes('"model"')).map((body) => JSON.parse(body).model)
  await chat.say('Say a word')
  await chat.ended('Parley.')
  assert.deepEqual(asked(), ['gpt-4o-mini'])
  await header.getByText('gpt-4o-mini').waitFor()
  await page.reload()
  await header.getByText('gpt-4o-mini').waitFor()
  assert.match(await picker.getAttribute('aria-label'), /gpt-4o-mini/)

  await picker.click()
  await page.getByRole('menuitem', { name: /^gpt-4\.1 / }).click()
  await chat.say('Say a word again')
  await until('it is answered', async () => (await chat.answers.getByText('Parley.').count()) === 2)
  await header.getByText('gpt-4.1').waitFor()
  assert.deepEqual(asked(), ['gpt-4o-mini', 'gpt-4.1'])
  assert.equal((await server.ask('GET', '/api/v1/settings')).model, undefined, 'everybody has another model')
})

const rich = [
  'Euler: \\(e^{i\\pi}+1 = 0\\), for $5 or $6.',
  '\\[\\int_0^1 x\\,dx = \\frac12\\]',
  '\\(\\href{javascript:window.pwned=1}{click}\\) \\(\\includegraphics{https://evil.example.com/x.png}\\)',
  '```mermaid\ngraph LR\n  A["<img src=x onerror=window.pwned=2>"] --> B[Done]\n' +
    '  B --> C["#lt;img src=x onerror=window.pwned=4#gt;"]\n  click A "javascript:window.pwned=3"\n```',
  '```mermaid\nthis is no diagram\n```',
].join('\n\n')

test('math and diagrams are drawn from what this server has, and hostile ones do nothing', async (t) => {
  const model = await Model.start(t)
  model.script('a formula', rich)
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server)
  const asked = []
  visitor.context.on('request', (r) => asked.push(r.url()))
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  await chat.field.fill('Draw me a formula')
  await page.waitForLoadState('networkidle')
  const drawing = /katex|mermaid|Formula|Diagram/i
  assert.deepEqual(asked.filter((url) => drawing.test(url)), [], 'loaded before it is used')
  await chat.say('Draw me a formula')
  await chat.ended('this is no diagram')
  await chat.log.locator('.katex-display').waitFor()
  await chat.log.getByText('e^{i\\pi}').waitFor({ state: 'attached' }) // for screen readers
  await chat.log.getByText('for $5 or $6').waitFor()
  const diagram = chat.log.getByRole('img', { name: /^Diagram: graph LR/ })
  await until('the diagram is there', () => diagram.evaluate((img) => img.complete && img.naturalWidth > 100))
  await chat.log.getByRole('button', { name: 'Show the text' }).click()
  await chat.log.getByText('B[Done]').waitFor()
  assert.equal(await page.evaluate(() => window.pwned), undefined)
  for (const name of [/katex/i, /mermaid/i]) assert(asked.some((url) => name.test(url)), `${name} has another name now`)
  assert.equal(await chat.log.getByRole('link').count(), 0)
  assert.deepEqual(
    asked.filter((url) => !url.startsWith(server.url) && !url.startsWith('data:')),
    [],
  )
})

test('an unknown address has a page', async (t) => {
  const server = await Server.start(t)
  const visitor = await Visitor.come(t, server, { tolerate: [/404/] })
  const page = await visitor.tab('/nowhere/at/all')
  await page.getByRole('heading', { name: 'Page not found' }).waitFor()
  await page.getByRole('link', { name: 'Start a conversation' }).click()
  await new Chat(page).field.waitFor()
})
