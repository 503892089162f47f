// Files with a message: chosen files and files of the project. A draft keeps them, and the model reads them by name.
import assert from 'node:assert/strict'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Chat } from './lib/chat.mjs'
import { Model, Server, test, Visitor } from './lib/index.mjs'

test('text files and files of the project are attached, survive a reload, and reach the model', async (t) => {
  const model = await Model.start(t)
  model.script('Look at these', 'I see.')
  const files = { 'src/main.go': 'package chosen\n', 'src/mask.bin': Buffer.from([255, 254]) }
  const server = await Server.start(t, { env: model.env, files })
  symlinkSync('/etc/passwd', join(server.workspace, 'src/mail.go'))
  const visitor = await Visitor.come(t, server, { tolerate: [/40[034]/] })
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  const chosen = page.getByRole('list', { name: 'Files to send' })
  await chat.field.fill('Look at these ')
  await page.locator('input[type=file]').setInputFiles([
    { name: 'notes.md', mimeType: '', buffer: Buffer.from('# Notes\n```\ncode\n```\n') },
    { name: 'data.bin', mimeType: 'application/octet-stream', buffer: Buffer.from([0, 1, 2, 255]) },
  ])
  await page.getByRole('alert').getByText('data.bin was not added: it is neither text nor a PNG').waitFor()
  await chosen.getByText('notes.md').waitFor()

  await page.reload()
  await chosen.getByText('notes.md').waitFor()
  assert.equal(await chat.field.inputValue(), 'Look at these ')

  await chat.field.press('End')
  await chat.field.pressSequentially('@sr')
  await page.getByRole('option', { name: /^@src\// }).waitFor()
  await chat.field.press('Tab')
  await page.getByRole('option', { name: /^@src\/main\.go/ }).waitFor()
  await chat.field.pressSequentially('ma')
  await page.getByRole('option', { name: /^@src\/mask\.bin/ }).click()
  await page.getByRole('alert').getByText('src/mask.bin was not attached.').waitFor()
  await chat.field.fill('Look at these @src/ma')
  await page.getByRole('option', { name: /^@src\/main\.go/ }).waitFor()
  assert.equal(await page.getByRole('option', { name: /mail\.go/ }).count(), 0, 'a link out of the project is offered')
  await chat.field.fill('Look at these @src/main.go')
  await page.getByRole('option', { name: /^@src\/main\.go/ }).waitFor()
  await chat.field.press('Enter')
  await chosen.getByText('src/main.go').waitFor()
  assert.equal(await chat.field.inputValue(), 'Look at these @src/main.go ')

  await chat.field.press('Enter')
  await chat.ended('I see.')
  const asked = JSON.parse(model.asked.at(-1)).messages.at(-1).content
  const text = typeof asked === 'string' ? asked : asked.map((part) => part.text).join('')
  const want =
    'Look at these @src/main.go\n\nFile `notes.md`:\n\n````\n# Notes\n```\ncode\n```\n````' +
    '\n\nFile `src/main.go`:\n\n```\npackage chosen\n```'
  assert.equal(text, want)
  assert.equal(await chosen.count(), 0)
  const said = chat.log.getByRole('article', { name: 'You said' })
  await said.getByRole('button', { name: 'src/main.go' }).click()
  await said.getByText('package chosen').waitFor()
  assert.equal(await said.getByText('# Notes').count(), 0, 'a file is shown before it is unfolded')
})

// pdf returns a PDF document of one page, with or without text.
function pdf(text) {
  const content = text === '' ? '' : `BT /F1 12 Tf 72 720 Td (${text}) Tj ET`
  const objects = [
    '<</Type /Catalog /Pages 2 0 R>>',
    '<</Type /Pages /Kids [3 0 R] /Count 1>>',
    '<</Type /Page /Parent 2 0 R /Contents 4 0 R /Resources <</Font <</F1 5 0 R>>>>>>',
    `<</Length ${content.length}>>\nstream\n${content}\nendstream`,
    '<</Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding>>',
  ]
  let out = '%PDF-1.4\n'
  const at = objects.map((object, i) => {
    const start = out.length
    out += `${i + 1} 0 obj\n${object}\nendobj\n`
    return start
  })
  const rows = at.map((start) => `${String(start).padStart(10, '0')} 00000 n \n`).join('')
  const end = `trailer\n<</Size 6 /Root 1 0 R>>\nstartxref\n${out.length}\n%%EOF\n`
  return Buffer.from(`${out}xref\n0 6\n0000000000 65535 f \n${rows}${end}`)
}

test('a PDF reaches the model as text, and one without text is refused in words', async (t) => {
  const model = await Model.start(t)
  model.script('Sum it up', 'It is about tea.').script('Once more', 'Still tea.')
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server, { tolerate: [/400/] })
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  const chosen = page.getByRole('list', { name: 'Files to send' })
  const choose = (name, buffer) =>
    page.locator('input[type=file]').setInputFiles({ name, mimeType: 'application/pdf', buffer })
  await chat.field.fill('Sum it up')
  await choose('my scan.pdf', pdf(''))
  await chosen.getByText('my scan.pdf').waitFor()
  await chat.field.press('Enter')
  await page.getByText('"my scan.pdf" has no text: its pages may be scanned.').waitFor()
  assert.equal(await chat.field.inputValue(), 'Sum it up', 'a refused message is lost')

  await chosen.getByRole('button', { name: 'Remove my scan.pdf' }).click()
  await choose('broken.pdf', Buffer.from('%PDF-1.7 nonsense'))
  await chosen.getByText('broken.pdf').waitFor()
  await chat.field.press('Enter')
  await page.getByText('"broken.pdf" cannot be read: it is damaged.').waitFor()

  await chosen.getByRole('button', { name: 'Remove broken.pdf' }).click()
  await choose('tea & more.pdf', pdf('Tea is brewed at eighty degrees.'))
  await chosen.getByText('tea & more.pdf').waitFor()
  await page.reload()
  await chosen.getByText('tea & more.pdf').waitFor()
  await chat.field.press('Enter')
  await chat.ended('It is about tea.')
  assert.match(model.asked.at(-1), /File \\"tea & more\.pdf\\", the text of a PDF \(pages: 1\):/)
  assert.match(model.asked.at(-1), /Tea is brewed at eighty degrees\./)
  const said = chat.log.getByRole('article', { name: 'You said' }).first()
  const file = said.getByRole('link', { name: 'tea & more.pdf' })
  assert.equal(await file.getAttribute('download'), 'tea & more.pdf')

  // The document is still there when the message is edited and sent again.
  await said.hover()
  await said.getByRole('button', { name: 'Edit and send again' }).click()
  await said.getByLabel('Edit the message').fill('Once more')
  await said.getByRole('button', { name: 'Send' }).click()
  await chat.ended('Still tea.')
  assert.match(model.asked.at(-1), /Tea is brewed at eighty degrees\./)
})

test('a model that reads pages gets the pages of a PDF', async (t) => {
  const model = await Model.start(t)
  model.script('Sum it up', 'It is about tea.')
  const env = { ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: 'sk-ant-test-0123456789', MODEL: 'claude-sonnet-4-5' }
  const server = await Server.start(t, { env })
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  await chat.field.fill('Sum it up')
  const scan = pdf('') // only a model that sees its pages can read it
  await page
    .locator('input[type=file]')
    .setInputFiles({ name: 'scan.pdf', mimeType: 'application/pdf', buffer: scan })
  await page.getByRole('list', { name: 'Files to send' }).getByText('scan.pdf').waitFor()
  await chat.field.press('Enter')
  await chat.ended('It is about tea.')
  const { content } = JSON.parse(model.asked.at(-1)).messages.at(-1)
  const document = content.find(({ type }) => type === 'document')
  assert.deepEqual(document.source, { type: 'base64', media_type: 'application/pdf', data: scan.toString('base64') })
})
