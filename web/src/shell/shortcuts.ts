import { useEffect, useRef, useSyncExternalStore } from 'react'

// The registry of keyboard shortcuts. `?` lists it, and no two pages use the same key. A page registers its shortcuts
// while it is shown.

interface Shortcut {
  // keys is 'j', '?', 'Escape', 'mod+k' (Ctrl, or Command on a Mac), or a chord
  // of two, 'g a'.
  keys: string
  what: string
  group?: string
  // without run it is only listed: its component handles it.
  run?: (event: KeyboardEvent) => void
}

type Registered = Shortcut & { group: string }

const page = 'This page'

let list: readonly Registered[] = []
const watchers = new Set<() => void>()

function change(next: readonly Registered[]) {
  list = next
  for (const tell of watchers) tell()
}

// register adds shortcuts until the returned function is called. If two shortcuts have the same keys, the page's wins,
// then the later one.
export function register(shortcuts: readonly Shortcut[]): () => void {
  const added = shortcuts.map((s) => ({ group: page, ...s }))
  change([...list, ...added])
  return () => change(list.filter((s) => !added.includes(s)))
}

export function shortcuts(): readonly Registered[] {
  return list
}

// useShortcuts registers shortcuts while a component is shown. Their functions may change with every render; the list
// changes only with its keys.
export function useShortcuts(offered: readonly Shortcut[]): void {
  const latest = useRef(offered)
  useEffect(() => {
    latest.current = offered
  })
  const names = JSON.stringify(offered.map((s) => [s.keys, s.what, s.group, s.run !== undefined]))
  useEffect(
    () =>
      register(
        latest.current.map((s, i) => ({
          ...s,
          run: s.run && ((event: KeyboardEvent) => latest.current[i]?.run?.(event)),
        })),
      ),
    [names],
  )
}

export function useAllShortcuts(): readonly Registered[] {
  return useSyncExternalStore(watch, shortcuts)
}

function watch(tell: () => void): () => void {
  watchers.add(tell)
  return () => watchers.delete(tell)
}

// Single letters can be turned off, for users who dictate or press keys by accident. (WCAG 2.1.4)
const letters = 'parley.letters'

export function lettersOn(): boolean {
  return localStorage.getItem(letters) !== 'off'
}

export function turnLetters(on: boolean): void {
  if (on) localStorage.removeItem(letters)
  else localStorage.setItem(letters, 'off')
  change([...list])
}

const chordWithin = 1_000 // ms between the two keys of a chord

// listen handles the keys of a document, and returns a function that stops it.
export function listen(target: Document): () => void {
  let first = ''
  let at = 0
  const heard = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.isComposing) return
    const key = keyOf(event)
    if (key === '') return
    const plain = !key.startsWith('mod+')
    if (plain && (isTyping(event.target) || inDialog(target) || (key.length === 1 && !lettersOn()))) return
    const chord = first !== '' && event.timeStamp - at < chordWithin ? `${first} ${key}` : ''
    const found = findLast(chord) ?? findLast(key)
    first = found === undefined && list.some((s) => s.keys.startsWith(`${key} `)) ? key : ''
    at = event.timeStamp
    if (found?.run === undefined) return
    event.preventDefault()
    found.run(event)
  }
  target.addEventListener('keydown', heard)
  return () => target.removeEventListener('keydown', heard)
}

// Shortcuts of a page win over those of the shell, in any order of registration: a page that is opened by its address
// registers before the shell.
function findLast(keys: string): Registered | undefined {
  if (keys === '') return undefined
  const found = list.filter((s) => s.keys === keys && s.run !== undefined)
  return found.findLast((s) => s.group === page) ?? found.at(-1)
}

function isMac(): boolean {
  return /Mac|iPhone|iPad/.test(navigator.userAgent)
}

// keyOf returns a key press in the notation of shortcuts; empty if it cannot be one.
function keyOf(event: KeyboardEvent): string {
  if (event.altKey || ['Shift', 'Control', 'Meta', 'Alt', 'Tab'].includes(event.key)) return ''
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key
  const mod = isMac() ? event.metaKey : event.ctrlKey
  const other = isMac() ? event.ctrlKey : event.metaKey
  if (other) return ''
  return mod ? `mod+${key}` : key
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
  )
}

function inDialog(of: Document): boolean {
  return of.querySelector('[role="dialog"], [role="alertdialog"], [role="menu"]') !== null
}

// written returns keys in the form that users see: ['⌘', 'K'].
export function written(keys: string): string[] {
  return keys
    .split(/[+ ]/)
    .map((key) =>
      key === 'mod' ? (isMac() ? '⌘' : 'Ctrl') : key === 'Escape' ? 'Esc' : key.length === 1 ? key.toUpperCase() : key,
    )
}
