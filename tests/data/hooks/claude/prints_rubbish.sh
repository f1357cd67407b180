#!/bin/sh
echo "{ not json"
