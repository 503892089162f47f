// One conversation, continued from the console in the full screen of parley chat, in parley run, and back.
import assert from 'node:assert/strict'
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Chat } from './lib/chat.mjs'
import { Server, temporary, test, until, Visitor } from './lib/index.mjs'
import { atEnd, binary } from './lib/server.mjs'

// A Screen is parley chat in a terminal of tmux.
class Screen {
  static open(t, ...args) {
    const screen = new Screen()
    screen.socket = join(temporary(t, 'screen'), 'tmux')
    const command = ['new-session', '-d', '-x', '100', '-y', '40', '-e', 'LC_ALL=C.UTF-8', '-e', 'PARLEY_SERVER=']
    screen.tmux('-f', '/dev/null', ...command, binary, 'chat', ...args)
    atEnd(t, () => screen.tmux('kill-server'))
    return screen
  }

  tmux(...args) {
    const env = { ...process.env, TMUX: '' }
    return execFileSync('tmux', ['-S', this.socket, '-u', ...args], { encoding: 'utf8', env })
  }

  // shows waits until the terminal shows texts. Line ends and rows of spaces count as one space.
  async shows(...texts) {
    await until(`the terminal shows ${texts.join(', ')}`, () => {
      const shown = this.tmux('capture-pane', '-p').replace(/\s+/g, ' ')
      return texts.every((text) => shown.includes(text))
    })
  }

  async say(text) {
    this.tmux('send-keys', '-l', text)
    await this.shows(`› ${text}`)
    this.tmux('send-keys', 'Enter')
  }
}

test('a conversation is carried from the console to the terminal and back', async (t) => {
  if (spawnSync('tmux', ['-V']).error) return t.skip('tmux is not installed')
  const server = await Server.start(t)
  const page = await (await Visitor.come(t, server)).tab('/')
  const chat = new Chat(page)
  await chat.say('say begun in the console')
  await chat.ended('begun in the console')
  const session = /\/chat\/([-0-9a-f]{36})/.exec(page.url())?.[1]
  assert(session, `the address of the conversation is ${page.url()}`)

  const screen = Screen.open(t, '--server', server.url, '--thread', session)
  await screen.shows('› say begun in the console begun in the console', '✓ ready')
  await screen.say('what did I say screen')
  await screen.shows('1. say begun in the console', '✓ ready')
  await chat.answers.locator('ol').first().waitFor()

  const { stdout } = await promisify(execFile)(binary, [
    'run',
    '--server',
    server.url,
    '--session',
    session,
    'what did I say run',
  ])
  assert.match(stdout, /1\. say begun in the console\n2\. what did I say screen/)

  await chat.say('what did I say console')
  await screen.shows('› what did I say console', '3. what did I say run', '✓ ready')
  await chat.answers.getByText('what did I say run').waitFor()
  await chat.idle()
  const seen = await chat.picture()
  const all = ['say begun in the console', 'what did I say screen', 'what did I say run', 'what did I say console']
  for (const said of all)
    assert.equal(seen.split('\n').filter((row) => row === `You said: ${said}`).length, 1, `${said} in\n${seen}`)
})
