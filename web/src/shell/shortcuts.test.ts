import { afterEach, beforeEach, expect, test } from 'vitest'
import { listen, register, shortcuts, turnLetters } from './shortcuts'

let stop: () => void
let heard: string[]
let forget: (() => void)[]

function offer(...keys: string[]) {
  forget.push(register(keys.map((key) => ({ keys: key, what: key, run: () => heard.push(key) }))))
}

function press(key: string, more: KeyboardEventInit = {}, target: EventTarget = document.body) {
  target.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more }))
}

beforeEach(() => {
  heard = []
  forget = []
  stop = listen(document)
})

afterEach(() => {
  stop()
  for (const f of forget) f()
  document.body.innerHTML = ''
  turnLetters(true)
  expect(shortcuts()).toEqual([])
})

test('single keys, and with Ctrl', () => {
  offer('j', '?', 'mod+k')
  press('j')
  press('?', { shiftKey: true })
  press('k', { ctrlKey: true })
  press('k')
  press('j', { altKey: true })
  expect(heard).toEqual(['j', '?', 'mod+k'])
})

test('a chord is two keys, soon after each other', () => {
  offer('g a', 'a')
  press('g')
  press('a')
  press('a')
  expect(heard).toEqual(['g a', 'a'])
})

test('shortcuts without Ctrl are off while the user types', () => {
  offer('j', 'mod+k')
  document.body.innerHTML = '<textarea></textarea>'
  const field = document.querySelector('textarea')!
  press('j', {}, field)
  press('k', { ctrlKey: true }, field)
  expect(heard).toEqual(['mod+k'])
})

test('behind a dialog single keys do nothing', () => {
  offer('j')
  document.body.innerHTML = '<div role="dialog"></div>'
  press('j')
  expect(heard).toEqual([])
})

test('letters can be turned off', () => {
  offer('j', 'mod+k', 'Escape')
  turnLetters(false)
  press('j')
  press('Escape')
  press('k', { ctrlKey: true })
  expect(heard).toEqual(['Escape', 'mod+k'])
})

test('what was registered last is in front, until it goes', () => {
  offer('j')
  const gone = register([{ keys: 'j', what: 'over it', run: () => heard.push('over it') }])
  press('j')
  gone()
  press('j')
  expect(heard).toEqual(['over it', 'j'])
})

test('what somebody else has dealt with is not done again', () => {
  offer('j')
  const button = document.createElement('button')
  document.body.append(button)
  button.addEventListener('keydown', (e) => e.preventDefault())
  press('j', {}, button)
  expect(heard).toEqual([])
})

test('a page is in front of the shell, whichever came first', () => {
  offer('j')
  forget.push(register([{ keys: 'j', what: 'next', group: 'Everywhere', run: () => heard.push('shell') }]))
  press('j')
  forget.shift()!()
  press('j')
  expect(heard).toEqual(['j', 'shell'])
})
