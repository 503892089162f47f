// The real binary, as a separate process with its own data.
import { spawn, execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
export const binary = process.env.PARLEY_BIN ?? join(here, '../../../bin/parley')

// patience limits any single wait on a busy machine. A test that passes does
// not wait for it.
export const patience = Number(process.env.PARLEY_PATIENCE ?? 60_000)

export const secret = 'a secret of more than thirty-two bytes'

const endings = new WeakMap()

// atEnd runs functions when a test ends, the last one first: t.after would
// begin with the first.
export function atEnd(t, undo) {
  if (!endings.has(t)) {
    endings.set(t, [])
    t.after(async () => {
      const errors = []
      for (const undo of endings.get(t).reverse()) {
        try {
          await undo()
        } catch (error) {
          errors.push(error)
        }
      }
      if (errors.length > 0) throw errors[0]
    })
  }
  endings.get(t).push(undo)
}

export function temporary(t, name) {
  const dir = mkdtempSync(join(tmpdir(), `parley-${name}-`))
  atEnd(t, () => rmSync(dir, { recursive: true, force: true }))
  return dir
}

export class Server {
  // files are the files of the workspace, by path, including agents under agents/. With git the folder is a repository,
  // and changes by a run are reported.
  static async start(t, { env = {}, files = {}, git = false } = {}) {
    if (!existsSync(binary)) throw new Error(`${binary} is not there: run make build`)
    const server = new Server()
    server.t = t
    server.env = env
    server.listen = '127.0.0.1:0'
    server.data = temporary(t, 'data')
    server.workspace = temporary(t, 'workspace')
    for (const [name, text] of Object.entries(files)) {
      const path = join(server.workspace, name)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, text)
    }
    if (git) {
      const as = ['-c', 'user.name=a', '-c', 'user.email=a@b.c']
      for (const args of [
        ['init', '-q'],
        ['add', '-A'],
        [...as, 'commit', '-qm', 'x'],
      ])
        execFileSync('git', args, { cwd: server.workspace })
    }
    atEnd(t, () => server.kill())
    await server.launch()
    return server
  }

  async launch() {
    const args = [
      'serve',
      '--listen',
      this.listen,
      '--data',
      this.data,
      '--workspace',
      this.workspace,
      '--drain',
      '100ms',
    ]
    this.log = []
    this.process = spawn(binary, args, {
      cwd: this.workspace,
      env: { LOG_LEVEL: 'info', PATH: process.env.PATH, ...this.env },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.exited = new Promise((resolve) => this.process.once('exit', resolve))
    const lines = createInterface({ input: this.process.stderr })
    const ready = new Promise((resolve, reject) => {
      lines.on('line', (line) => {
        this.log.push(line)
        const found = /msg="parley is ready" address=http:\/\/(\S+)/.exec(line)
        if (found) resolve(found[1])
      })
      void this.exited.then(() => reject(new Error(`the server ended:\n${this.log.slice(-20).join('\n')}`)))
    })
    ready.catch(() => {})
    this.address = await within(ready, 'the server is ready')
    this.listen = this.address // keeps the address after a restart
    this.url = `http://${this.address}`
  }

  async stop() {
    this.process.kill('SIGTERM')
    await within(this.exited, 'the server stops')
  }

  async kill() {
    if (this.process.exitCode === null && this.process.signalCode === null) this.process.kill('SIGKILL')
    await this.exited
  }

  // finished waits until no run is active in a session.
  finished(session, token) {
    return until('the run has ended', async () => {
      const { status, head } = await this.ask('GET', `/api/v1/sessions/${session}`, { token })
      return status === 'idle' && head > 0
    })
  }

  // knows waits until the server has read a skill's file.
  knows(skill) {
    return until(`the skill ${skill} is known`, async () => {
      const { skills } = await this.ask('GET', '/api/v1/skills')
      return skills.some((one) => one.name === skill)
    })
  }

  // ask sends a request for information or preparation. The test itself acts in
  // the browser.
  async ask(method, path, { token, body } = {}) {
    const headers = { Accept: 'application/json' }
    if (token !== undefined) headers.Authorization = `Bearer ${token}`
    if (body !== undefined) headers['Content-Type'] = 'application/json'
    const response = await fetch(this.url + path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
}

// jwt returns the settings of a server that requires tokens. Rate limits are
// off, since tests send more requests than people.
export const jwt = {
  PARLEY_AUTH: 'jwt',
  PARLEY_JWT_SECRET: secret,
  PARLEY_LIMIT_CONNECTIONS: 'off',
  PARLEY_LIMIT_RECONNECTIONS: 'off',
  PARLEY_LIMIT_MESSAGES: 'off',
}

export function token(user, role, ttl = '1h') {
  const env = { PATH: process.env.PATH, PARLEY_JWT_SECRET: secret }
  return execFileSync(binary, ['token', '--user', user, '--role', role, '--ttl', ttl], { env, cwd: tmpdir() })
    .toString()
    .trim()
}

export async function within(promise, what, limit = patience) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${limit / 1000} s: ${what}`)), limit)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

// until polls for a condition without an event.
export async function until(what, holds, limit = patience) {
  const deadline = Date.now() + limit
  for (let last; ;) {
    try {
      const found = await holds()
      if (found) return found
      last = found
    } catch (error) {
      last = error
    }
    if (Date.now() > deadline) throw new Error(`not within ${limit / 1000} s: ${what} (${last})`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
