import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { agentHue, agentLetters, agentShape } from './agentHue'

// light is the relative luminance (WCAG) of an oklch colour, clipped to sRGB.
function light(l: number, c: number, hue: number): number {
  const a = c * Math.cos((hue * Math.PI) / 180)
  const b = c * Math.sin((hue * Math.PI) / 180)
  const [x, y, z] = [
    (l + 0.3963377774 * a + 0.2158037573 * b) ** 3,
    (l - 0.1055613458 * a - 0.0638541728 * b) ** 3,
    (l - 0.0894841775 * a - 1.291485548 * b) ** 3,
  ]
  const within = (v: number) => Math.min(1, Math.max(0, v))
  const red = within(4.0767416621 * x - 3.3077115913 * y + 0.2309699292 * z)
  const green = within(-1.2684380046 * x + 2.6097574011 * y - 0.3413193965 * z)
  const blue = within(-0.0041960863 * x - 0.7034186147 * y + 1.707614701 * z)
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

it('an agent can be read on the ground of its hue, light and dark', () => {
  const css = readFileSync(join(import.meta.dirname, '../theme.css'), 'utf8')
  const rule = /\.agent-hue \{\s*background: oklch\((\S+) (\S+) [^;]*;\s*color: oklch\((\S+) (\S+) /g
  const rules = [...css.matchAll(rule)]
  expect(rules).toHaveLength(2)
  for (const [, ...numbers] of rules) {
    const [bl, bc, il, ic] = numbers.map(Number) as [number, number, number, number]
    for (let hue = 0; hue < 360; hue++) {
      const [low, high] = [light(bl, bc, hue), light(il, ic, hue)].sort((x, y) => x - y) as [number, number]
      expect((high + 0.05) / (low + 0.05), `hue ${hue}`).toBeGreaterThan(4.5)
    }
  }
})

it('names have looks of their own, and keep them', () => {
  expect(agentLetters('helpful-assistant')).toBe('HA')
  expect(agentLetters('coder')).toBe('C')
  expect(agentLetters('--')).toBe('?')
  const look = (name: string) => `${agentHue(name)} ${agentShape(name)}`
  expect(look('coder')).toBe(look('coder'))
  expect(look('coder')).not.toBe(look('helpful-assistant'))
})
