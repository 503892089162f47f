// The server names rules and reasons by codes, which programs compare. Users get sentences.

const reasons: [code: RegExp, sentence: (name: string) => string][] = [
  [/\bpattern:([a-z_]+)/g, (name) => `it looks like an attempt to change what the agent was told (rule “${spaced(name)}”)`],
  [/\bmodel:([a-z_]+)/g, (name) => `a model took it for an attack (${spaced(name)})`],
  [/\bcanary_leak\b/g, () => 'the model was about to reveal a part of its secret instructions'],
  [/\bcanary token detected\b/g, () => 'the model was about to reveal a part of its secret instructions'],
]

function spaced(name: string): string {
  return name.replaceAll('_', ' ')
}

// plainly replaces the codes in a text from the server.
export function plainly(text: string): string {
  const whole = text.replace(/^message blocked: (.*?)\.?$/s, 'The message was blocked: $1.')
  return reasons.reduce((said, [code, sentence]) => said.replace(code, (_, name: string) => sentence(name)), whole)
}
