// Accessibility of cards, dialogs, menus, reports and found messages. pages.test.mjs has the pages.
import assert from 'node:assert/strict'
import { looks, violations } from './lib/axe.mjs'
import { Chat } from './lib/chat.mjs'
import { call, Model, Server, test, until, Visitor } from './lib/index.mjs'

for (const [name, look] of Object.entries(looks)) {
  test(`nothing serious is found by axe in cards, dialogs, menus and reports, ${name}`, async (t) => {
    const model = await Model.start(t)
    const options = [{ label: 'Blue', description: 'as the sky' }, { label: 'Red' }]
    const questions = [{ question: 'Which colour?', header: 'Colour', options, multi_select: false }]
    const edit = { path: 'cache.go', old_text: 'one', new_text: 'two' }
    model
      .script('fix it', { toolCalls: [call('edit_file', edit)] }, 'Fixed: \\(e = mc^2\\).')
      .script('paint it', { toolCalls: [call('ask_user', { questions })] }, 'x')
      .script('write it', { toolCalls: [call('write_file', { path: 'cache.go', content: 'new\n' })] }, 'x')
      .script(
        'plan it',
        { toolCalls: [call('update_plan', { summary: 'A plan', items: [{ title: 'Look', status: 'pending' }] })] },
        'What do you think?',
      )
    const server = await Server.start(t, { env: model.env, files: { 'cache.go': 'one\n' }, git: true })
    const visitor = await Visitor.come(t, server, look)
    const page = await visitor.tab('/')
    const found = {}
    const look_at = async (where) => {
      const serious = await violations(page)
      if (serious.length > 0) found[where] = serious
    }
    const chat = new Chat(page)
    await chat.say('Please fix it')
    await chat.card.getByRole('button', { name: 'Allow once' }).click()
    await chat.ended('Fixed')
    await chat.log.locator('.katex').first().waitFor()
    await chat.log.getByRole('region', { name: 'Changed files' }).waitFor()
    await chat.answers.last().hover()
    await look_at('an answer with its change report')
    await chat.log.getByRole('button', { name: 'Undo these changes' }).click()
    await page.getByRole('alertdialog').waitFor()
    await look_at('a dialog')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Conversation actions' }).click()
    await page.getByRole('menuitem', { name: 'Copy the link' }).waitFor()
    await look_at('a menu')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: /^Model: / }).click()
    await page.getByRole('menuitem', { name: 'Another model…' }).waitFor()
    await look_at('the models')
    await page.keyboard.press('Escape')
    await chat.field.fill('/')
    await page.getByRole('listbox', { name: 'Suggestions' }).waitFor()
    await look_at('suggestions')
    await chat.field.fill('')
    await chat.answers.getByRole('button', { name: 'Answer again, in a branch' }).first().click()
    await page.getByRole('navigation', { name: 'Branch 2 of 2' }).waitFor()
    await chat.card.waitFor()
    await look_at('a branch')

    for (const message of ['Please paint it', 'Please write it'])
      await server.ask('POST', '/api/chat', { body: { message } })
    await server.ask('POST', '/api/chat', { body: { message: 'Please plan it', mode: 'plan' } })
    await until('a plan waits', async () => (await server.ask('GET', '/api/v1/plans')).plans.length === 1)
    await page.goto('/approvals')
    await page.getByRole('region', { name: 'Plan' }).waitFor()
    await page.getByRole('radio', { name: /Blue/ }).waitFor()
    await page.getByText('It replaces all of cache.go').waitFor()
    await look_at('cards of every kind')
    await page.goto('/files?path=cache.go')
    await page.getByRole('button', { name: 'Show the last change' }).click()
    await page.getByRole('region', { name: /Changes of cache.go/ }).waitFor()
    await look_at('the last change of a file')
    if (look.width === 390) {
      await page.getByRole('button', { name: /^Menu/ }).click()
      await page.getByRole('dialog', { name: 'Menu' }).waitFor()
    }
    await page.getByRole('searchbox', { name: 'Search conversations' }).fill('please fix')
    await page.locator('mark').first().waitFor()
    await look_at('messages found')
    assert.deepEqual(found, {})
  })
}
