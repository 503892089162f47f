// Undo of a run's changes, from its change report.
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Chat } from './lib/chat.mjs'
import { call, Model, Server, test, Visitor } from './lib/index.mjs'

const patch = `*** Begin Patch
*** Update File: notes.md
@@
-# Notes
+# Theirs
*** Add File: src/new.go
+package new
*** Delete File: old.txt
*** End Patch`

test('the changes of a run are undone, once, unless a file has changed since', async (t) => {
  const model = await Model.start(t)
  model.script('change it', { toolCalls: [call('apply_patch', { patch })] }, 'Done.')
  model.script('what now', 'I see.')
  const files = { 'notes.md': '# Notes\n', 'old.txt': 'old\n' }
  const server = await Server.start(t, { env: model.env, files, git: true })
  const at = (name) => join(server.workspace, name)
  const visitor = await Visitor.come(t, server, { tolerate: [/409/] })
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  await chat.say('change it')
  await chat.card.getByRole('button', { name: 'Allow once' }).click()
  await chat.ended('Done.')

  // A dialog asks first. It lists each file and the effect on it.
  const report = chat.log.getByRole('region', { name: 'Changed files' })
  const other = await visitor.tab(new URL(page.url()).pathname)
  const ask = async () => {
    await report.getByRole('button', { name: 'Undo these changes' }).click()
    const dialog = page.getByRole('alertdialog', { name: 'Undo these changes?' })
    await dialog.waitFor()
    return dialog
  }
  let dialog = await ask()
  for (const line of [/notes\.md\s*will be restored/, /src\/new\.go\s*will be deleted/, /old\.txt\s*will be brought back/])
    await dialog.getByRole('listitem').filter({ hasText: line }).waitFor()
  await dialog.getByRole('button', { name: 'Keep them' }).click()
  assert.equal(readFileSync(at('notes.md'), 'utf8'), '# Theirs\n')

  // A file that changed after the run is named, and no file is touched.
  writeFileSync(at('notes.md'), '# Mine\n')
  dialog = await ask()
  await dialog.getByRole('button', { name: 'Undo', exact: true }).click()
  await dialog.getByText(/these files have changed since the run: "notes\.md"/).waitFor()
  assert.ok(existsSync(at('src/new.go')) && !existsSync(at('old.txt')))
  writeFileSync(at('notes.md'), '# Theirs\n')
  await dialog.getByRole('button', { name: 'Try again' }).click()

  // Every tab shows the result, also after a reload, and the button is gone.
  for (const tab of [page, other]) {
    const shown = new Chat(tab).log.getByRole('region', { name: 'Changed files' })
    await shown.getByRole('status').filter({ hasText: /notes\.md was restored/ }).waitFor()
    assert.equal(await shown.getByRole('button', { name: 'Undo these changes' }).count(), 0)
  }
  assert.equal(readFileSync(at('notes.md'), 'utf8'), '# Notes\n')
  assert.equal(readFileSync(at('old.txt'), 'utf8'), 'old\n')
  assert.ok(!existsSync(at('src/new.go')))
  await page.reload()
  await report.getByText('Undone: notes.md was restored').waitFor()

  // The model and the audit get a record of it.
  await chat.say('what now')
  await chat.ended('I see.')
  assert.match(model.asked.at(-1), /The user undid what a run before this had changed/)
  const { events } = await server.ask('GET', '/api/v1/audit/events?limit=50')
  assert.ok(events.some((e) => e.action === 'changes.undone'))
})
