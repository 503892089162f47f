import type { Answer } from '../../cards/content'
import { ask, Problem } from '../../wire/api'

// answerCard sends the answers of a card, one for each of its questions.
export async function answerCard(id: string, given: Answer[]): Promise<void> {
  const answers = given.map((answer, at) => ({ question_index: at, custom_text: null, ...answer }))
  try {
    await ask('POST', '/api/ask-user-response', { body: { question_id: id, answers } })
  } catch (error) {
    const gone = error instanceof Problem && (error.status === 410 || error.status === 404)
    throw gone ? new Problem('It was answered elsewhere, or it has expired.', error.status) : error
  }
}
