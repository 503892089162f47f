// The files of projects: a tree, a viewer, marks for what the last run changed, and links from tool lines.
import assert from 'node:assert/strict'
import { symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Chat } from './lib/chat.mjs'
import { call, Model, Server, temporary, test, Visitor } from './lib/index.mjs'
import { Rail } from './lib/shell.mjs'

test('files are shown, with what the last run changed, and every project has its own', async (t) => {
  const model = await Model.start(t)
  model.script('change it', { toolCalls: [call('write_file', { path: 'src/main.go', content: 'package main\n' })] }, 'Done.')
  const second = temporary(t, 'second')
  writeFileSync(join(second, 'other.txt'), 'of the other project')
  const files = { 'src/main.go': 'package old\n', 'notes.md': '# Notes\n', '.env': 'SECRET=1\n' }
  const server = await Server.start(t, { env: { ...model.env, PARLEY_PROJECTS: second }, files })
  symlinkSync('/etc/passwd', join(server.workspace, 'link'))
  const visitor = await Visitor.come(t, server, { tolerate: [/40[034]/] })
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  await page.getByRole('combobox', { name: 'Project' }).waitFor()
  await chat.say('change it')
  await chat.card.getByRole('button', { name: 'Allow once' }).click()
  await chat.ended('Done.')

  // From a tool line to the file, with its change.
  await page.getByRole('button', { name: /Write src\/main\.go/ }).first().click()
  await page.getByRole('link', { name: 'Open the file' }).click()
  await page.waitForURL(/\/files\?/)
  const file = page.getByRole('region', { name: 'src/main.go', exact: true })
  await file.getByRole('group', { name: 'Content of src/main.go' }).getByText('package main').waitFor()
  await file.getByRole('button', { name: 'Show the last change' }).click()
  await file.getByText('package old').waitFor()
  const tree = page.getByRole('navigation', { name: 'Files of the project' })
  await tree.getByRole('link', { name: /main\.go.*changed by the last run/ }).waitFor()
  await tree.getByRole('link', { name: 'notes.md' }).click()
  await page.getByRole('group', { name: 'Content of notes.md' }).getByText('# Notes').waitFor()

  // Files that users may not read are not shown, whatever the address.
  assert.equal(await tree.getByText('.env').count(), 0)
  for (const path of ['.env', 'link', '../x']) {
    await page.goto(`/files?path=${encodeURIComponent(path)}`)
    await page.getByText('This file cannot be shown.').waitFor()
  }

  // The other project has its own files and conversations.
  await page.getByRole('combobox', { name: 'Project' }).selectOption({ label: basename(second) })
  await tree.getByRole('link', { name: 'other.txt' }).click()
  await page.getByText('of the other project').waitFor()
  await new Rail(page).goTo('Agents')
})
