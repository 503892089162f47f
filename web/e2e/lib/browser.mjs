// Debian's Chromium, driven by playwright-core. Every page is watched: what it
// says on its console, throws, or is kept from by its policy, fails the test.
import assert from 'node:assert/strict'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { chromium } from 'playwright-core'
import { atEnd, patience } from './server.mjs'

function find(name) {
  for (const dir of (process.env.PATH ?? '').split(delimiter)) {
    try {
      accessSync(join(dir, name), constants.X_OK)
      return join(dir, name)
    } catch {
      // not here
    }
  }
}

const path = process.env.CHROMIUM ?? find('chromium') ?? find('chromium-browser') ?? find('google-chrome')

// skip is why there are no tests: only for people without a browser. In CI there
// has to be one.
export const skip = path === undefined && !process.env.CI ? 'chromium is not installed' : false

let started

async function browser() {
  assert(path !== undefined, 'chromium is not in PATH: apt-get install chromium')
  started ??= chromium.launch({ executablePath: path, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] })
  return started
}

export async function closeBrowser() {
  if (started) await (await started).close()
  started = undefined
}

// Of a socket that is left while it is being opened a browser says so; it is no
// trouble.
const left = /WebSocket is closed before the connection is established/

// A Visitor is one person's browser: tabs that share cookies and storage.
export class Visitor {
  static async come(
    t,
    server,
    { width = 1280, height = 800, dark = false, reducedMotion = 'reduce', tolerate = [] } = {},
  ) {
    const visitor = new Visitor()
    visitor.server = server
    visitor.troubles = []
    visitor.tolerate = [left, ...tolerate]
    visitor.context = await (
      await browser()
    ).newContext({
      baseURL: server.url,
      viewport: { width, height },
      colorScheme: dark ? 'dark' : 'light',
      reducedMotion,
      locale: 'en-GB',
    })
    visitor.context.setDefaultTimeout(patience)
    visitor.context.setDefaultNavigationTimeout(patience)
    await visitor.context.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (e) =>
        console.error(`policy: ${e.violatedDirective} ${e.blockedURI}`),
      )
    })
    atEnd(t, async () => {
      await visitor.context.close()
      assert.deepEqual(visitor.troubles, [], 'what the pages complained about')
    })
    return visitor
  }

  // expect lets the pages complain about something from now on: a test that stops
  // the server hears of it.
  expect(...patterns) {
    this.tolerate.push(...patterns)
  }

  async tab(at = '/') {
    const page = await this.context.newPage()
    const trouble = (text) => {
      if (!this.tolerate.some((pattern) => pattern.test(text))) this.troubles.push(text)
    }
    page.on('pageerror', (error) => trouble(`thrown: ${error.stack ?? error}`))
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning')
        trouble(`${message.type()}: ${message.text()} (${message.location().url})`)
    })
    await page.goto(at)
    return page
  }
}
