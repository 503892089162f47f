// A conversation with a title from the model, as a document: copied as Markdown, and saved as a page that loads nothing
// and runs nothing.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Chat } from './lib/chat.mjs'
import { Model, Server, test, Visitor } from './lib/index.mjs'

test('a conversation is named by its model, copied as Markdown and exported as a page and as JSON lines', async (t) => {
  const model = await Model.start(t)
  const hostile = '**bold** <script>window.ran = 1</script> ![pixel](https://example.com/p.png)'
  model.always('You write titles of conversations', '"A **tag** in an answer"')
  model.script('say something', `A tag:\n\n${hostile}\n\n<img src="https://example.com/q.png" onerror="window.ran = 2">`)
  const server = await Server.start(t, { env: { ...model.env, PARLEY_TITLES: 'on' } })
  const visitor = await Visitor.come(t, server)
  await visitor.context.grantPermissions(['clipboard-read', 'clipboard-write'])
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  await chat.say('Please say something')
  await chat.ended('A tag:')
  await page.getByRole('heading', { level: 1, name: 'A **tag** in an answer' }).waitFor()
  await page.getByRole('link', { name: /A \*\*tag\*\* in an answer/ }).waitFor()
  const titles = model.asked.filter((request) => request.includes('You write titles'))
  assert(!titles.some((request) => request.includes('"tools"')), 'a title has tools')
  const act = async (name) => {
    await page.getByRole('button', { name: 'Conversation actions' }).click()
    await page.getByRole('menuitem', { name }).click()
  }
  const download = async (name) => {
    const begun = page.waitForEvent('download')
    await act(name)
    const file = await begun
    return { name: file.suggestedFilename(), path: await file.path() }
  }

  await act('Copy as Markdown')
  await page.getByText('The conversation is copied as Markdown.').waitFor()
  const copied = await page.evaluate(() => navigator.clipboard.readText())
  assert.match(copied, /^# A \\\*\\\*tag\\\*\\\* in an answer\n/)
  assert.match(copied, /## You\n\nPlease say something\n/)
  // Tags that can hide the text after them are shown as text.
  assert(copied.includes(hostile.replace('<script>', '\\<script>')), copied)
  const kept = await download('Export as Markdown')
  assert.match(kept.name, /^conversation-[0-9a-f]{8}\.md$/)
  assert.equal(readFileSync(kept.path, 'utf8'), copied)

  const lines = readFileSync((await download('Export all events (JSON lines)')).path, 'utf8').trim().split('\n')
  assert.equal(JSON.parse(lines[0]).type, 'SessionOpened')
  assert.equal(JSON.parse(lines.at(-1)).type, 'SessionRenamed')

  const html = await download('Export as a web page')
  assert.match(html.name, /^conversation-[0-9a-f]{8}\.html$/)
  const asked = []
  const reader = await visitor.context.newPage()
  reader.on('request', (request) => asked.push(request.url()))
  // The page without the policy of its head: its text alone must be harmless.
  await reader.setContent(readFileSync(html.path, 'utf8').replace(/<meta http-equiv[^>]*>/, ''))
  await reader.getByRole('heading', { name: 'You', exact: true }).waitFor()
  await reader.getByText('<script>window.ran = 1</script>').waitFor()
  await reader.getByText('bold', { exact: true }).waitFor()
  assert.equal(await reader.evaluate(() => window.ran), undefined)
  assert.deepEqual(asked, [], 'the page loads something')
})
