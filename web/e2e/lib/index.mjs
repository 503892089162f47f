import { after, test as run } from 'node:test'
import { closeBrowser, skip, Visitor, whileAway } from './browser.mjs'
import { call, Model } from './model.mjs'
import { jwt, patience, Server, temporary, token, until, within } from './server.mjs'

export { call, jwt, Model, patience, Server, temporary, token, until, Visitor, whileAway, within }

// test is a test with a browser.
export function test(name, body) {
  return run(name, { skip }, body)
}

after(closeBrowser)
