// Inspection: model calls with their prompts, a session as it was at any event, lists of runs, and two runs compared.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { call, Model, Server, test, until, Visitor } from './lib/index.mjs'

test('a run shows each prompt and answer, is replayed, filtered and compared', async (t) => {
  const model = await Model.start(t)
  model
    .script('look around', { content: 'I look.', toolCalls: [call('list_files', {})] }, 'There is a file.')
    .script('look again', 'Still one file.')
  const server = await Server.start(t, { env: model.env })
  const visitor = await Visitor.come(t, server)
  const session = '0b7f2a54-0000-4000-8000-00000000a001'
  await server.ask('POST', '/api/v1/sessions', { body: { id: session } })
  for (const content of ['look around', 'look again']) {
    await server.ask('POST', `/api/v1/sessions/${session}/inputs`, { body: { content } })
    await server.finished(session)
  }

  // Every prompt on the page is the one that the vendor got.
  const page = await visitor.tab('/runs')
  const table = page.getByRole('table')
  await table.getByRole('row').nth(2).waitFor()
  assert.deepEqual(await table.getByRole('columnheader').allInnerTexts(), [
    'Compare',
    'Status',
    'Conversation',
    'Agent',
    'Duration',
    'Tokens',
    'Cost',
    'Started',
  ])
  await page.getByRole('img', { name: /^Runs: highest 2 runs/ }).waitFor()
  await page.getByRole('img', { name: /^Cost: highest / }).waitFor()
  const totals = page.getByRole('region', { name: 'Totals' })
  for (const name of ['Input tokens', 'Output tokens', 'Median duration', 'Cost per run'])
    await totals.getByText(name).waitFor()
  await table.getByRole('row').nth(2).getByRole('link').click()
  const calls = page.getByRole('region', { name: 'Model calls' })
  await calls.getByRole('button', { name: /^Turn 2/ }).click()
  const shown = calls.getByText('Everything here is what was sent')
  await shown.waitFor()
  const sent = JSON.parse(model.asked[1])
  const instructions = await calls.locator('pre').first().innerText()
  const system = sent.messages.find((m) => m.role === 'system' || m.role === 'developer').content
  assert(system.startsWith(instructions.trim()), `shown: ${instructions}\nsent: ${system}`)
  for (const part of ['User', 'Assistant calls list_files', 'Result of list_files', `${sent.tools.length} tools`])
    await calls.getByText(part, { exact: true }).waitFor()
  await calls.getByRole('button', { name: 'Answer' }).click()
  await calls.getByText('There is a file.').waitFor()
  await calls.getByRole('button', { name: 'Parameters' }).click()
  await calls.getByText('Time to first token').waitFor()
  await calls.getByText('gpt-4.1').first().waitFor()

  // Only the page scrolls, never the window with the rail.
  await page.setViewportSize({ width: 1280, height: 400 })
  await until('the window is lower', () => page.evaluate(() => innerHeight === 400))
  assert.equal(await page.evaluate(() => document.documentElement.scrollHeight), 400)
  await page.setViewportSize({ width: 1280, height: 800 })

  // A skill that is created later changes the instructions, and the page says so.
  mkdirSync(join(server.workspace, 'skills', 'deploy'), { recursive: true })
  writeFileSync(
    join(server.workspace, 'skills', 'deploy', 'SKILL.md'),
    '---\nname: deploy\ndescription: how to deploy\n---\nDeploy.\n',
  )
  await server.knows('deploy')
  await calls.getByRole('button', { name: 'Prompt' }).click()
  await calls.getByText(/^Since this call, the instructions.* have changed/).waitFor()

  // The session as it was at an event.
  await page.getByRole('button', { name: 'Step through the session' }).click()
  const past = page.getByRole('region', { name: 'The session at this event' })
  await past.getByText('There is a file.').waitFor()
  const slider = page.getByRole('slider', { name: 'Event' })
  await slider.focus()
  await page.keyboard.press('Home')
  await past.getByText('Nothing has been said yet.').waitFor()
  await slider.fill(String(await seqOf(server, session, 'ToolCallFinished')))
  await past.getByText('I look.').waitFor()
  assert.equal(await past.getByText('There is a file.').count(), 0)

  // Filters, search and comparison.
  await page.goto('/runs')
  await table.getByRole('row').nth(2).waitFor()
  await page.getByRole('combobox', { name: 'Status' }).selectOption('failed')
  await page.getByText('No run of this time matches').waitFor()
  await page.getByRole('button', { name: 'Remove all filters' }).click()
  await page.getByRole('searchbox', { name: 'Search runs' }).fill('LOOK around')
  await table.getByRole('row').nth(2).waitFor()
  for (const box of await table.getByRole('checkbox').all()) await box.check()
  await page.getByRole('link', { name: 'Compare the two runs' }).click()
  await page.getByRole('heading', { name: 'Compare runs' }).waitFor()
  await page.getByText('There is a file.').waitFor()
  await page.getByText('Still one file.').waitFor()
  await page.getByRole('row', { name: /^Model calls/ }).waitFor()
})

async function seqOf(server, session, type) {
  const response = await fetch(`${server.url}/api/v1/sessions/${session}/log`)
  const lines = (await response.text()).trim().split('\n')
  return lines.findIndex((line) => JSON.parse(line).type === type)
}
