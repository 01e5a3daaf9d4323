"""A random BERT small enough to be made in a test, and texts in its words."""

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["the", "dog", "cat", "runs", "sleeps", "under", "a", "tree", "and", "then", "home", "!"]
VOCABULARY = {word: number for number, word in enumerate(SPECIAL + WORDS)}
WIDTH, POSITIONS = 16, 40


def save_tiny_bert(folder, seed=0):
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=POSITIONS,
        initializer_range=0.5,  # so that embeddings of different texts are far apart
    )
    BertModel(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordPiece(VOCABULARY, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]"
    ).save_pretrained(folder)
    return folder


def make_texts(n, longest=30, seed=0):
    """Different texts of 1 to ``longest`` words."""
    rng = np.random.default_rng(seed)
    texts = {}
    while len(texts) < n:
        texts[" ".join(rng.choice(WORDS[:-1], rng.integers(1, longest + 1)))] = None
    return list(texts)


def states_by_hand(folder, text):
    """The last hidden states of one text, word by word from the vocabulary, without padding."""
    numbers = [VOCABULARY.get(word, VOCABULARY["[UNK]"]) for word in text.split()]
    model = BertModel.from_pretrained(folder).eval()
    with torch.no_grad():
        states = model(torch.tensor([[2, *numbers, 3]])).last_hidden_state
    return states[0].numpy()
