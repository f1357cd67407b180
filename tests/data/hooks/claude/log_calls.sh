#!/bin/sh
cat >> "$HOME/calls.jsonl"
