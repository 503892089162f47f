// Several projects: each has its own agents, skills and files, wherever the console asks about them.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { DebugConsole } from './lib/agent.mjs'
import { Chat } from './lib/chat.mjs'
import { call, Model, Server, temporary, test, until, Visitor } from './lib/index.mjs'

test('agents, skills and files are those of the project of the conversation', async (t) => {
  const model = await Model.start(t)
  const write = { toolCalls: [call('write_file', { path: 'keep.txt', content: 'new\n' })] }
  model.script('replace it', write, 'I leave it.')
  const second = temporary(t, 'second')
  for (const folder of ['agents', 'skills/tidy']) mkdirSync(join(second, folder), { recursive: true })
  writeFileSync(join(second, 'keep.txt'), 'old\n')
  writeFileSync(join(second, 'agents/writer.md'), '---\nname: writer\ndescription: writes texts\n---\nWrite.\n')
  writeFileSync(join(second, 'skills/tidy/SKILL.md'), '---\nname: tidy\ndescription: tidies up\n---\nTidy up.\n')
  const files = { 'agents/coder.md': '---\nname: coder\ndescription: writes code\n---\nWrite code.\n' }
  const server = await Server.start(t, { env: { ...model.env, PARLEY_PROJECTS: second }, files })
  const visitor = await Visitor.come(t, server)
  const page = await visitor.tab('/')
  const chat = new Chat(page)
  const choose = () =>
    page.getByRole('combobox', { name: 'Project' }).selectOption({ label: basename(second) })
  await page.getByRole('heading', { name: 'Hello. I am coder.' }).waitFor()
  await choose()
  await page.getByRole('heading', { name: 'Hello. I am writer.' }).waitFor()
  await chat.field.fill('/ti')
  await page.getByRole('option', { name: /^\/tidy/ }).waitFor()
  await chat.say('Please replace it')

  // The card knows the file of its own project. The first project has no file of this name.
  const { runs } = await until('it waits', async () => {
    const list = await server.ask('GET', '/api/v1/runs?open=1')
    return list.runs.length === 1 && (await server.ask('GET', '/api/v1/approvals')).approvals.length === 1 && list
  })
  assert.equal(runs[0].agent, 'writer')
  const warned = async (card, where) => {
    await card.getByText('It replaces all of keep.txt, which has one line now.').waitFor()
    assert.equal(await card.getAttribute('data-danger'), 'true', `${where}: to allow is the default`)
  }
  await warned(chat.card, 'the chat')
  for (const path of ['/approvals', `/runs/${runs[0].id}`]) {
    const tab = await visitor.tab(path)
    await warned(tab.getByRole('article', { name: 'writer wants to write keep.txt' }), path)
    await tab.close()
  }
  await chat.card.getByRole('button', { name: 'Deny', exact: true }).click()
  await chat.ended('I leave it.')

  // The pages of agents show those of the chosen project, and their debug consoles work in it.
  await page.goto(`/runs/${runs[0].id}`)
  await page.getByRole('main').getByRole('link', { name: 'writer', exact: true }).click()
  const debug = new DebugConsole(page)
  await debug.connected()
  await debug.say('Please replace it')
  await warned(debug.panel.getByRole('article', { name: 'writer wants to write keep.txt' }), 'the debug console')
  await page.goto('/agents')
  const main = page.getByRole('main')
  await main.getByRole('link', { name: /coder/ }).waitFor()
  await choose()
  await main.getByRole('link', { name: /coder/ }).waitFor({ state: 'detached' })
  await main.getByRole('link', { name: /writer/ }).click()
  await page.getByRole('region', { name: 'Definition' }).getByText('Write.').waitFor()

  // A mission and the skills are those of the chosen project.
  await page.goto('/settings#autonomy')
  await choose()
  const agents = page.getByRole('combobox', { name: 'Agent' })
  await agents.getByRole('option', { name: 'writer' }).waitFor({ state: 'attached' })
  await page.getByLabel('Goal of the agents').fill('Write it.')
  await page.getByRole('button', { name: 'Set the mission' }).click()
  await page.getByText('Write it.', { exact: true }).waitFor()
  const missions = async (root) =>
    (await server.ask('GET', `/api/v1/missions?project=${encodeURIComponent(root)}`)).missions.map(({ text }) => text)
  assert.deepEqual(await missions(second), ['Write it.'])
  assert.deepEqual(await missions(server.workspace), [])
  await page.getByRole('button', { name: 'End the mission' }).click()
  await page.getByText('1 earlier mission').waitFor()
  await page.getByRole('tab', { name: 'Skills' }).click()
  await choose()
  await page.getByText('tidies up').waitFor()
})
