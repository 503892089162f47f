// Files with a message: chosen ones and those of the project. A draft keeps them, and the model reads them by name.
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
