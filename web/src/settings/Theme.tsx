import { useState } from 'react'

// public/theme.js reads the same before the first paint.
const key = 'parley.theme'
const names = { system: 'As this machine', light: 'Light', dark: 'Dark' }
type Name = keyof typeof names

function chosen(): Name {
  const kept = localStorage.getItem(key)
  return kept === 'light' || kept === 'dark' ? kept : 'system'
}

export function Theme() {
  const [theme, setTheme] = useState(chosen)
  const choose = (next: Name) => {
    if (next === 'system') localStorage.removeItem(key)
    else localStorage.setItem(key, next)
    const dark = next === 'system' ? matchMedia('(prefers-color-scheme: dark)').matches : next === 'dark'
    document.documentElement.dataset.theme = dark ? 'dark' : 'light'
    setTheme(next)
  }
  return (
    <fieldset className="flex flex-wrap gap-2">
      <legend className="sr-only">Theme</legend>
      {(Object.keys(names) as Name[]).map((name) => (
        <label key={name} className="flex cursor-pointer items-center gap-2 rounded-md border border-line px-3 py-2 text-sm has-[:checked]:border-accent has-[:checked]:bg-accent-soft has-[:focus-visible]:outline-2 has-[:focus-visible]:outline-offset-2 has-[:focus-visible]:outline-accent">
          <input type="radio" name="theme" className="accent-accent" checked={theme === name} onChange={() => choose(name)} />
          {names[name]}
        </label>
      ))}
    </fieldset>
  )
}
