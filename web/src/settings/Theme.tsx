import { useTheme, type Theme as Name } from '../shell/theme'
import { classes } from '../ui/classes'

const names: Record<Name, string> = { system: 'Same as the system', light: 'Light', dark: 'Dark' }

export function Theme() {
  const [theme, choose] = useTheme()
  return (
    <fieldset className="flex flex-wrap gap-2">
      <legend className="sr-only">Theme</legend>
      {(Object.keys(names) as Name[]).map((name) => (
        <label
          key={name}
          className={classes(
            'flex cursor-pointer items-center gap-2 rounded-md border border-line px-3 py-2',
            'text-sm has-[:checked]:border-accent has-[:checked]:bg-accent-soft',
            'has-[:focus-visible]:outline-2 has-[:focus-visible]:outline-offset-2 has-[:focus-visible]:outline-accent',
          )}
        >
          <input
            type="radio"
            name="theme"
            className="accent-accent"
            checked={theme === name}
            onChange={() => choose(name)}
          />
          {names[name]}
        </label>
      ))}
    </fieldset>
  )
}
