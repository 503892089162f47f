// Lets @modelcontextprotocol/conformance start on Node 20, which lacks one function of node:fs that the program imports
// and, for testing a server, never calls. Use: node --import ./testdata/old-node.mjs PROGRAM
import { register } from 'node:module'

const fs = 'data:text/javascript,' + encodeURIComponent(`
  export * from 'node:fs'
  export function globSync() { throw new Error('globSync needs Node 22') }`)

register('data:text/javascript,' + encodeURIComponent(`
  export function resolve(specifier, context, next) {
    if (specifier === 'fs' && context.parentURL?.includes('/@modelcontextprotocol/conformance/')) {
      return { url: ${JSON.stringify(fs)}, shortCircuit: true }
    }
    return next(specifier, context)
  }`))
