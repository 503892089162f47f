import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, it } from 'vitest'

const src = join(import.meta.dirname, '..')
const model = join(import.meta.dirname, 'model')
const view = join(import.meta.dirname, 'view')
const react = /^(react|react-dom|radix-ui|@testing-library\/react|@tanstack\/react-.*)(\/|$)/

// imports returns the modules that a source imports. Types count, too, since a type of a component is a step towards
// it.
function imports(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(/(?:from|import|import\()\s*'([^']+)'/g)].map((match) => match[1]!)
}

function resolved(from: string, specifier: string): string | undefined {
  const path = join(dirname(from), specifier)
  return ['', '.ts', '.tsx'].map((ending) => path + ending).find((file) => /\.tsx?$/.test(file) && existsSync(file))
}

// wayOut returns the chain of imports by which a file reaches React or the view; undefined: it does not.
function wayOut(file: string, seen = new Set<string>()): string[] | undefined {
  if (file.startsWith(view)) return [relative(src, file)]
  if (seen.has(file)) return undefined
  seen.add(file)
  for (const specifier of imports(file)) {
    if (react.test(specifier)) return [relative(src, file), specifier]
    const next = specifier.startsWith('.') ? resolved(file, specifier) : undefined
    const rest = next === undefined ? undefined : wayOut(next, seen)
    if (rest !== undefined) return [relative(src, file), ...rest]
  }
  return undefined
}

const rule = 'chat/model holds pure functions and types: it must not import React or chat/view, not even through others'

it.each(readdirSync(model))('chat/model/%s imports neither React nor the view', (name) => {
  expect(wayOut(join(model, name))?.join(' imports ') ?? 'nothing', rule).toBe('nothing')
})
