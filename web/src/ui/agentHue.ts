// The look of an agent, by its name: the same in every session and on every page.

// hash is FNV-1a.
function hash(name: string): number {
  let sum = 0x811c9dc5
  for (let at = 0; at < name.length; at++) sum = Math.imul(sum ^ name.charCodeAt(at), 0x01000193)
  return sum >>> 0
}

// agentHue returns an angle of the colour circle, one of 24 that can be told
// apart.
export function agentHue(name: string): number {
  return (hash(name) % 24) * 15
}

export type Shape = 'circle' | 'square' | 'leaf' | 'drop'

const shapes: Shape[] = ['circle', 'square', 'leaf', 'drop']

// agentShape differs where hues are similar, and for people who cannot see
// hues.
export function agentShape(name: string): Shape {
  return shapes[Math.floor(hash(name) / 24) % shapes.length]!
}

// agentLetters returns the first letters of the first two words of a name.
export function agentLetters(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '')
  return (words.slice(0, 2).map((word) => [...word][0]!).join('') || '?').toUpperCase()
}
